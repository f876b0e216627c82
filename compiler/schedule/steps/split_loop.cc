#include "compiler/schedule/steps/split_loop.h"

#include "base/numbers/integers.h"

namespace kiln::schedule {

void SplitLoop(State& state, int number, int loop, std::span<const int64_t> lengths,
               bool inner_to_outer) {
  Stage& stage = state.MutableStage(number);
  const int32_t parent = stage.loops[loop].iter;
  const IterKind kind = stage.iters[parent].kind;
  const int32_t pieces = static_cast<int32_t>(lengths.size()) + 1;
  const int32_t first = static_cast<int32_t>(stage.iters.size());
  const int32_t relation_number = static_cast<int32_t>(stage.relations.size());

  Relation& relation = stage.relations.emplace_back();
  relation.kind = Relation::kSplit;
  relation.inner_to_outer = inner_to_outer;
  relation.parents.push_back(parent);
  relation.lengths.assign(lengths.begin(), lengths.end());

  // Extent of the piece without a length. Dividing by one length after the other rounds up like
  // dividing by the product.
  int64_t rest = stage.iters[parent].extent;
  for (int64_t length : lengths) {
    if (rest != kUnknownExtent) rest = length > 0 ? CeilDiv(rest, length) : kUnknownExtent;
  }
  for (int32_t i = 0; i < pieces; ++i) {
    const bool is_rest = inner_to_outer ? i == 0 : i == pieces - 1;
    const int64_t length = is_rest ? rest : lengths[inner_to_outer ? i - 1 : i];
    relation.children.push_back(first + i);
    stage.iters.push_back({kind, length == 0 ? kUnknownExtent : length, relation_number});
  }

  stage.loops[loop] = {first};
  stage.loops.insert(stage.loops.begin() + loop + 1, pieces - 1, LoopIter{});
  for (int32_t i = 1; i < pieces; ++i) stage.loops[loop + i] = {first + i};

  // Stages that were attached to the split loop are then attached to its innermost piece.
  state.MoveAttached(number, [&](int at) { return at >= loop ? at + pieces - 1 : at; });
}

}  // namespace kiln::schedule
