#include "compiler/dag/softmax_chain.h"
#include "compiler/schedule/steps/steps.h"
#include "search/space/online_tiles.h"
#include "search/space/sketch_rules/rules.h"
#include "search/space/tiling.h"

namespace kiln::search {
namespace {

using schedule::State;

// A product of rows by their softmax, the scores of which are products too, in one kernel: a sketch
// of one step beside those of the stages one by one.
class OnlineSoftmax final : public SketchRule {
 public:
  std::string_view name() const override { return "online softmax"; }

  RuleAnswer Condition(const RuleContext&, const State& state, int s) const override {
    const bool is_first = s == state.num_stages() - 1 && state.steps().empty();
    return is_first && dag::FindSoftmaxChain(*state.dag()).ok() ? RuleAnswer::kApply
                                                                : RuleAnswer::kSkip;
  }

  NextStates Apply(const RuleContext& context, State state, int s) const override {
    schedule::OnlineTile tile{.parts = 0};
    if (OnlineSpaceOf(context.task, context.parameters).sharing) tile.splits = 0;
    if (HasOnlineMatrixUnit(*state.dag(), context.task.target))
      tile.matrix_unit = ir::MatrixUnitScope::kWarp;
    MustApply(state, std::make_shared<schedule::OnlineSoftmaxStep>(s, tile));
    return One(std::move(state), -1);
  }
};

}  // namespace

SketchRulePtr OnlineSoftmaxRule() { return std::make_unique<OnlineSoftmax>(); }

}  // namespace kiln::search
