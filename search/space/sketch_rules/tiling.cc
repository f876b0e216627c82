#include "search/space/tiling.h"

#include <optional>

#include "compiler/schedule/steps/steps.h"
#include "search/space/search_space.h"
#include "search/space/sketch_rules/rules.h"
#include "search/space/stage_view.h"

namespace kiln::search {
namespace {

using schedule::State;

const std::string& Structure(const RuleContext& context) {
  return context.parameters.*SpaceOf(context.task.target).tiling;
}

class MultiLevelTilingWithFusion final : public SketchRule {
 public:
  std::string_view name() const override { return "multi-level tiling with fusion"; }
  RuleAnswer Condition(const RuleContext& context, const State& state, int s) const override {
    if (state.stage(s).is_placeholder()) return RuleAnswer::kSkip;
    const StageView view(state, s);
    if (!FusibleReader(state, s)) return RuleAnswer::kSkip;
    if (!view.NeedsMultiLevelTiling()) {
      if (!TilesColumns(context, state, s)) return RuleAnswer::kSkip;
      return view.IsCacheWriteStage() ? RuleAnswer::kApplyAndSkipRest : RuleAnswer::kApply;
    }
    return view.IsCacheWriteStage() || context.task.target.is_gpu() ? RuleAnswer::kApplyAndSkipRest
                                                                    : RuleAnswer::kApply;
  }
  NextStates Apply(const RuleContext& context, State state, int s) const override {
    const int consumer = *FusibleReader(state, s);
    const std::string& structure = Structure(context);
    State tiled = state;
    const std::vector<int> steps = TileMultiLevel(tiled, s, structure);
    // On a GPU below the loops of blocks, vthreads and threads.
    const std::vector<int> fusion_levels =
        context.task.target.is_gpu() ? std::vector<int>{3} : std::vector<int>{1, 2};
    NextStates next;
    for (int levels : fusion_levels) {
      if (structure[levels - 1] != 'S') continue;
      State fused = tiled;
      FollowTiling(fused, consumer, steps, levels);
      const int loop = levels * static_cast<int>(steps.size()) - 1;
      MustApply(fused, std::make_shared<schedule::ComputeAtStep>(s, consumer, loop));
      next.emplace_back(std::move(fused), s - 1);
    }
    return next;
  }
};

class MultiLevelTiling final : public SketchRule {
 public:
  std::string_view name() const override { return "multi-level tiling"; }
  // On a GPU what broadcasts two vectors need not be tiled: its rows may be its reductions' too.
  RuleAnswer Condition(const RuleContext& context, const State& state, int s) const override {
    if (state.stage(s).is_placeholder()) return RuleAnswer::kSkip;
    if (context.task.target.is_gpu() && !HasReduceLoop(state.stage(s))) return RuleAnswer::kSkip;
    return StageView(state, s).NeedsMultiLevelTiling() ? RuleAnswer::kApplyAndSkipRest
                                                       : RuleAnswer::kSkip;
  }
  NextStates Apply(const RuleContext& context, State state, int s) const override {
    TileMultiLevel(state, s, Structure(context));
    return One(std::move(state), s - 1);
  }
};

class SkipStage final : public SketchRule {
 public:
  std::string_view name() const override { return "skip stage"; }
  RuleAnswer Condition(const RuleContext&, const State&, int) const override {
    return RuleAnswer::kApply;
  }
  NextStates Apply(const RuleContext&, State state, int s) const override {
    return One(std::move(state), s - 1);
  }
};

}  // namespace

std::optional<int> FusibleReader(const State& state, int s) {
  const std::optional<int> reader = StageView(state, s).ElementwiseConsumer();
  if (!reader || IsTiled(state.stage(*reader)) || HasReduceLoop(state.stage(*reader)))
    return std::nullopt;
  return reader;
}

SketchRulePtr TilingWithFusionRule() { return std::make_unique<MultiLevelTilingWithFusion>(); }
SketchRulePtr TilingRule() { return std::make_unique<MultiLevelTiling>(); }
SketchRulePtr SkipStageRule() { return std::make_unique<SkipStage>(); }

}  // namespace kiln::search
