#include "compiler/schedule/steps/steps.h"
#include "search/space/sketch_rules/rules.h"
#include "search/space/stage_view.h"
#include "search/space/tiling.h"

namespace kiln::search {
namespace {

using schedule::State;

// Cores share one reduction: each combines a part, a second stage combines the parts.
class AddRfactor final : public SketchRule {
 public:
  std::string_view name() const override { return "add rfactor"; }
  RuleAnswer Condition(const RuleContext& context, const State& state, int s) const override {
    const StageView view(state, s);
    if (!HasReduceLoop(state.stage(s)) || view.IsCacheWriteStage()) return RuleAnswer::kSkip;
    const dag::Combiner combiner = state.stage(s).op->combiner();
    if (dag::IsArg(combiner)) return RuleAnswer::kSkip;
    const double spatial = view.SpatialProduct(), reduce = view.ReduceProduct();
    const double cores = context.task.hardware.num_cores;
    bool needed = reduce > 1 && reduce > cores;
    if (view.NeedsMultiLevelTiling()) needed = !(spatial > reduce || spatial > cores * 16);
    return needed ? RuleAnswer::kApply : RuleAnswer::kSkip;
  }
  NextStates Apply(const RuleContext&, State state, int s) const override {
    State base = state;
    const int reduce_loop = FuseReduceLoops(base, s);
    const int64_t extent = base.stage(s).loop(reduce_loop).extent;
    // Length 1 now so that the state is concrete for rfactor; GenerateSketches blanks it.
    MustApply(base, std::make_shared<schedule::SplitStep>(s, reduce_loop, extent,
                                                          std::vector<int64_t>{1}, true));
    NextStates next;
    for (int piece = 0; piece < 2; ++piece) {
      State variant = base;
      MustApply(variant,
                std::make_shared<schedule::RfactorStep>(s, reduce_loop + piece, reduce_loop));
      if (piece == 1) {
        // The factored axis innermost, to be vectorized.
        std::vector<int> order;
        for (int i = 0; i < static_cast<int>(variant.stage(s).loops.size()); ++i) {
          if (i != reduce_loop) order.push_back(i);
        }
        order.push_back(reduce_loop);
        MustApply(variant, std::make_shared<schedule::ReorderStep>(s, order));
      }
      next.emplace_back(std::move(variant), s - 1);
    }
    return next;
  }
};

}  // namespace

SketchRulePtr RfactorRule() { return std::make_unique<AddRfactor>(); }

}  // namespace kiln::search
