#include <fmt/ranges.h>

#include "base/numbers/integers.h"
#include "compiler/schedule/steps/hash.h"
#include "compiler/schedule/steps/legality.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

Status CheckFusable(const State& state, int stage, const std::vector<int>& loops) {
  KILN_RETURN_IF_ERROR(CheckComputes(state, stage));
  if (loops.empty()) {
    if (state.stage(stage).loops.empty()) return OkStatus();
    return InvalidArgument(
        "nothing to fuse; expected consecutive loops (an empty list is for a "
        "stage without loops, this one has {})",
        state.stage(stage).loops.size());
  }
  for (int loop : loops) KILN_RETURN_IF_ERROR(CheckLoop(state, stage, loop));
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i] != loops[0] + static_cast<int>(i)) {
      return InvalidArgument("loops [{}] are not consecutive; expected a, a+1, a+2, ...",
                             fmt::join(loops, ", "));
    }
    if (i + 1 < loops.size() && state.HasAttached(stage, loops[i])) {
      return InvalidArgument(
          "stages {} are computed at {}; expected nothing attached to a fused loop except the last",
          DescribeStages(state, state.AttachedTo(stage, loops[i])),
          DescribeLoop(state, stage, loops[i]));
    }
  }
  return OkStatus();
}

IterKind CommonKind(IterKind a, IterKind b) { return a == b ? a : IterKind::kMixed; }

// Unknown if a factor is unknown, or if the product does not fit.
int64_t ExtentProduct(int64_t a, int64_t b) {
  if (a == kUnknownExtent || b == kUnknownExtent) return kUnknownExtent;
  return CheckedMul(a, b).value_or(kUnknownExtent);
}

}  // namespace

StatusOr<StepPtr> FuseStep::Parse(StepReader& reader) {
  const int stage = reader.Int("stage");
  std::vector<int> loops = reader.Ints("loops");
  return reader.Make<FuseStep>(stage, std::move(loops));
}

Status FuseStep::ApplyTo(State& state) const {
  KILN_RETURN_IF_ERROR(CheckFusable(state, stage_id, loops));
  Stage& stage = state.MutableStage(stage_id);
  const int32_t fused = static_cast<int32_t>(stage.iters.size());

  Relation& relation = stage.relations.emplace_back();
  relation.kind = Relation::kFuse;
  relation.children.push_back(fused);
  IterVar iter{IterKind::kSpecial, 1, static_cast<int32_t>(stage.relations.size()) - 1};
  for (int loop : loops) {
    const IterVar& parent = stage.loop(loop);
    iter.kind = loop == loops[0] ? parent.kind : CommonKind(iter.kind, parent.kind);
    iter.extent = ExtentProduct(iter.extent, parent.extent);
    relation.parents.push_back(stage.loops[loop].iter);
  }
  stage.iters.push_back(iter);
  if (loops.empty()) {
    stage.loops.push_back({fused});
    return OkStatus();
  }

  const int first = loops.front(), last = loops.back();
  stage.loops[first] = {fused};
  stage.loops.erase(stage.loops.begin() + first + 1, stage.loops.begin() + last + 1);
  state.MoveAttached(stage_id, [&](int at) {
    if (at <= first) return at;
    return at <= last ? first : at - (last - first);
  });
  return OkStatus();
}

std::string FuseStep::ToJson() const {
  return fmt::format("[\"FU\", {}, [{}]]", stage_id, fmt::join(loops, ", "));
}

uint64_t FuseStep::Hash() const { return StepHash(kTag).Add(stage_id).AddAll(loops).value(); }

}  // namespace kiln::schedule
