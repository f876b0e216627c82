#include <algorithm>
#include <optional>

#include "compiler/dag/merge_axes.h"
#include "compiler/schedule/steps/steps.h"
#include "search/space/matrix_product.h"
#include "search/space/sketch_rules/rules.h"
#include "search/space/stage_view.h"
#include "search/space/tiling.h"

namespace kiln::search {
namespace {

using schedule::State;

// The rows of a product for matrix units that are several axes by name alone, as those of a 1x1
// convolution are: as one axis they are a matrix, whose tiles are cut where no image ends, and which the
// units of four warps and the copy engine read as it lies.
class MergedRows final : public SketchRule {
 public:
  std::string_view name() const override { return "merged rows"; }

  RuleAnswer Condition(const RuleContext& context, const State& state, int s) const override {
    if (!context.parameters.merged_rows) return RuleAnswer::kSkip;
    const schedule::StepPtr step = StepFor(context, state, s);
    if (step == nullptr) return RuleAnswer::kSkip;
    State merged = state;
    return merged.Apply(step).ok() ? RuleAnswer::kApplyAndSkipRest : RuleAnswer::kSkip;
  }

  NextStates Apply(const RuleContext& context, State state, int s) const override {
    MustApply(state, StepFor(context, state, s));
    return One(std::move(state), s);
  }

 private:
  // Null: there are no such rows.
  static schedule::StepPtr StepFor(const RuleContext& context, const State& state, int s) {
    const dag::Operator& op = *state.stage(s).op;
    const StageView view(state, s);
    if (!op.is_reduction() || op.num_outputs() != 1 || !view.NeedsMultiLevelTiling() ||
        view.IsCacheWriteStage() || state.stage(s).is_partial_reduction)
      return nullptr;
    const std::optional<MatrixProduct> product = MatrixProductOf(op);
    if (!product || !HasMatrixUnit(context.task.target, *product->unit)) return nullptr;
    const auto is_row = [](MatrixAxis axis) { return axis == MatrixAxis::kRow; };
    const auto first = std::ranges::find_if(product->axes, is_row);
    const auto end = std::find_if_not(first, product->axes.end(), is_row);
    const auto from = static_cast<int>(first - product->axes.begin());
    const auto count = static_cast<int>(end - first);
    int long_ones = 0;
    for (int axis = from; axis < from + count; ++axis) long_ones += op.axes()[axis].extent > 1;
    if (long_ones < 2) return nullptr;
    return std::make_shared<schedule::MergeAxesStep>(s, from, count);
  }
};

}  // namespace

SketchRulePtr MergedRowsRule() { return std::make_unique<MergedRows>(); }

}  // namespace kiln::search
