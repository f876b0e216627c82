// A product whose rows an index chooses, as of x[rows[i], k]. A kernel of its own copies the rows.
// The product reads the copy then, whose tiles the copy engine brings.
#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "compiler/ir/traverse.h"
#include "compiler/schedule/steps/chosen_copy.h"
#include "compiler/schedule/steps/steps.h"
#include "search/space/matrix_product.h"
#include "search/space/sketch_rules/rules.h"
#include "search/space/stage_view.h"
#include "search/space/tiling.h"

namespace kiln::search {
namespace {

using schedule::State;

class ChosenRows final : public SketchRule {
 public:
  std::string_view name() const override { return "chosen rows"; }

  RuleAnswer Condition(const RuleContext& context, const State& state, int s) const override {
    const schedule::StepPtr step = StepFor(context, state, s);
    State copied = state;
    return step != nullptr && copied.Apply(step).ok() ? RuleAnswer::kApply : RuleAnswer::kSkip;
  }

  NextStates Apply(const RuleContext& context, State state, int s) const override {
    MustApply(state, StepFor(context, state, s));
    return One(std::move(state), s + 1);
  }

 private:
  // Returns the step that copies the rows. Null: stage s is no large product of rows that an index
  // chooses.
  static schedule::StepPtr StepFor(const RuleContext& context, const State& state, int s) {
    const dag::Operator& op = *state.stage(s).op;
    const StageView view(state, s);
    if (!op.is_reduction() || op.num_outputs() != 1 || !view.NeedsMultiLevelTiling() ||
        IsTiled(state.stage(s)) || view.IsCacheWriteStage() ||
        state.stage(s).is_partial_reduction || !HasWarpgroupUnits(context.task.target))
      return nullptr;
    const std::optional<MatrixProduct> product = MatrixProductOf(op);
    if (!product || !HasMatrixUnit(context.task.target, *product->unit) ||
        !IsForWarpgroups(*product) || MegaflopsOf(op) < context.parameters.least_transposed_mflop)
      return nullptr;
    const std::optional<int> index = IndexOfRows(*product);
    if (!index) return nullptr;
    const std::vector<dag::Tensor>& inputs = state.dag()->node(s).inputs;
    const int array = inputs[static_cast<size_t>(product->first->id)].op,
              rows = inputs[static_cast<size_t>(*index)].op;
    std::vector<int> order;
    for (int d = 0; d < static_cast<int>(product->first->num_args); ++d) order.push_back(d);
    return std::make_shared<schedule::CacheReadStep>(std::max(array, rows),
                                                     std::string(schedule::kChosenScope),
                                                     std::vector<int>{s}, std::move(order));
  }

  // Returns the slot of the input that numbers the rows of the first factor.
  static std::optional<int> IndexOfRows(const MatrixProduct& product) {
    std::optional<int> slot;
    for (size_t axis = 0; axis < product.axes.size(); ++axis) {
      if (product.axes[axis] != MatrixAxis::kRow) continue;
      for (const ir::Expr index : product.first->args()) {
        if (!ir::UsesVar(index, static_cast<int32_t>(axis))) continue;
        ir::Visit(index, [&](ir::Expr e) {
          if (e->op == ir::Op::kLoad) slot = e->id;
        });
      }
    }
    return slot;
  }

  static double MegaflopsOf(const dag::Operator& op) {
    return 2e-6 * static_cast<double>(op.num_elements()) * static_cast<double>(op.reduce_size());
  }
};

}  // namespace

SketchRulePtr ChosenRowsRule() { return std::make_unique<ChosenRows>(); }

}  // namespace kiln::search
