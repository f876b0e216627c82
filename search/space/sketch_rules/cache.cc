#include <algorithm>
#include <set>

#include "compiler/instructions/matrix_unit.h"
#include "compiler/schedule/steps/steps.h"
#include "search/space/sketch_rules/rules.h"
#include "search/space/stage_view.h"
#include "search/space/tiling.h"

namespace kiln::search {
namespace {

using schedule::IterKind;
using schedule::Stage;
using schedule::State;

// The loop in which every reduction axis that is tiled has run its outermost tile; none: the stage
// has no reduction. An axis that is whole further inside (the inner part of a split one) has none.
std::optional<int> LastLoopOfOutermostReduceTile(const Stage& stage) {
  const std::vector<std::string>& whole = stage.op->attrs().no_split_at_inner;
  size_t tiled = 0;
  for (const dag::Axis& axis : stage.op->reduce_axes()) {
    tiled += std::find(whole.begin(), whole.end(), axis.name) == whole.end();
  }
  std::set<int> seen;
  std::optional<int> last;
  for (int loop = 0; loop < static_cast<int>(stage.loops.size()); ++loop) {
    if (stage.loop(loop).kind != IterKind::kReduce) {
      if (last) break;
      continue;
    }
    const std::vector<int> axes = schedule::AxesOf(stage, stage.loops[loop].iter);
    if (std::ranges::any_of(axes, [&](int axis) { return seen.contains(axis); })) break;
    seen.insert(axes.begin(), axes.end());
    last = loop;
    if (seen.size() >= tiled) break;
  }
  return last;
}

// A tile of an input in shared memory, loaded anew for every outermost reduction tile of its
// reader.
class AddCacheRead final : public SketchRule {
 public:
  std::string_view name() const override { return "add cache read"; }

  RuleAnswer Condition(const RuleContext&, const State& state, int s) const override {
    const std::vector<int> consumers = state.Consumers(s);
    if (consumers.empty() || !Caches(state, s, consumers[0])) return RuleAnswer::kSkip;
    return RuleAnswer::kApplyAndSkipRest;
  }

  NextStates Apply(const RuleContext&, State state, int s) const override {
    State next = state;
    int inserted = 0;
    for (int consumer : state.Consumers(s)) {
      if (!Caches(state, s, consumer)) continue;
      std::vector<int> readers = ReadersIn(state, s, consumer);
      for (int& reader : readers) reader += inserted;
      MustApply(next, std::make_shared<schedule::CacheReadStep>(s, "shared", std::move(readers)));
      const int reader = consumer + ++inserted;
      MustApply(next,
                std::make_shared<schedule::ComputeAtStep>(
                    s + 1, reader, LastLoopOfOutermostReduceTile(next.stage(reader)).value()));
    }
    return {{std::move(next), s}};
  }

 private:
  // The stages that read s and are computed within the consumer: itself, and a stage inlined into
  // it, as an unpacked factor is.
  static std::vector<int> ReadersIn(const State& state, int s, int consumer) {
    std::vector<int> readers;
    for (const int reader : state.dag()->consumers(s)) {
      const bool is_inside = state.attach(reader).kind == schedule::Attach::kInlined &&
                             state.Consumers(reader) == std::vector<int>{consumer};
      if (reader == consumer || is_inside) readers.push_back(reader);
    }
    return readers;
  }

  // Returns whether the reader finds with its elements where the factors of a product lie, and uses
  // them for nothing else. Then the tile of a factor is what an element chooses
  // (lower/indexed_regions.h), as long as the element is in global memory.
  static bool IsIndexOfProduct(const State& state, int s, int consumer) {
    const dag::Operator& op = *state.stage(consumer).op;
    if (!state.stage(s).is_placeholder() || !op.is_reduction() || op.num_outputs() != 1 ||
        ReadersIn(state, s, consumer) != std::vector<int>{consumer})
      return false;
    const auto factors = instructions::MatrixFactorsOf(op.body());
    if (!factors) return false;
    const std::vector<dag::Tensor>& inputs = state.dag()->node(consumer).inputs;
    return inputs[factors->a->id].op != s && inputs[factors->b->id].op != s;
  }

  // Readers that are not tiled read global memory.
  static bool Caches(const State& state, int s, int consumer) {
    return StageView(state, consumer).NeedsMultiLevelTiling() &&
           !IsIndexOfProduct(state, s, consumer) && !HasCrossThreadReduction(state, consumer) &&
           LastLoopOfOutermostReduceTile(state.stage(consumer)) &&
           !ReadersIn(state, s, consumer).empty();
  }
};

class AddCacheWrite final : public SketchRule {
 public:
  std::string_view name() const override { return "add cache write"; }
  RuleAnswer Condition(const RuleContext& context, const State& state, int s) const override {
    const dag::Operator& op = *state.stage(s).op;
    // On a CPU, as in TVM, outputs of one operator are computed where they are read.
    const bool fits = op.num_outputs() == 1 || (context.task.target.is_gpu() && op.is_reduction());
    if (op.is_placeholder() || !fits) return RuleAnswer::kSkip;
    const StageView view(state, s);
    const bool only = context.task.target.is_gpu() && HasReduceLoop(state.stage(s));
    // Sums of a GPU are in registers. A product whose reader has the tiles of another product has
    // them in a copy of its own.
    const bool is_inside = only && view.NeedsMultiLevelTiling()
                               ? FusibleReader(state, s).has_value()
                               : view.ElementwiseConsumer().has_value();
    if (is_inside) return RuleAnswer::kSkip;
    if (!view.NeedsMultiLevelTiling())
      return TilesColumns(context, state, s) ? RuleAnswer::kApply : RuleAnswer::kSkip;
    return only ? RuleAnswer::kApplyAndSkipRest : RuleAnswer::kApply;
  }
  // The cache stage, which is then s, has an elementwise consumer and is tiled with fusion.
  NextStates Apply(const RuleContext&, State state, int s) const override {
    State next = state;
    MustApply(next, std::make_shared<schedule::CacheWriteStep>(s, "local"));
    return {{std::move(next), s}};
  }
};

}  // namespace

SketchRulePtr CacheReadRule() { return std::make_unique<AddCacheRead>(); }
SketchRulePtr CacheWriteRule() { return std::make_unique<AddCacheWrite>(); }

}  // namespace kiln::search
