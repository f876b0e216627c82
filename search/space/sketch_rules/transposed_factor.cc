#include <algorithm>
#include <optional>

#include "compiler/dag/packed_inputs.h"
#include "compiler/schedule/steps/steps.h"
#include "search/space/matrix_product.h"
#include "search/space/sketch_rules/rules.h"
#include "search/space/stage_view.h"
#include "search/space/tiling.h"

namespace kiln::search {
namespace {

using schedule::State;

// Without units a product takes ten times as long: of the least size of others.
constexpr double kLeastOfUnreadable = 0.1;

// A factor of a product whose neighbours are not along the sum, though units of four warps read such
// alone, of 32 and of 8 bits; or no units read them as they lie: of a convolution whose channels do not
// come last. A kernel of its own transposes it, with the zeros around an image in it; the product is
// tiled after that.
class TransposedFactor final : public SketchRule {
 public:
  std::string_view name() const override { return "transposed factor"; }

  RuleAnswer Condition(const RuleContext& context, const State& state, int s) const override {
    return context.parameters.transposed_factors && FactorOf(context, state, s) ? RuleAnswer::kApply
                                                                                : RuleAnswer::kSkip;
  }

  NextStates Apply(const RuleContext& context, State state, int s) const override {
    Factor factor = *FactorOf(context, state, s);
    MustApply(state, std::make_shared<schedule::CacheReadStep>(
                         factor.stage, "transposed", std::vector<int>{s}, std::move(factor.order)));
    return One(std::move(state), s + 1);
  }

 private:
  struct Factor {
    int stage;
    std::vector<int> order;  // of its dimensions: that of the sum is the last one
  };

  static std::optional<Factor> FactorOf(const RuleContext& context, const State& state, int s) {
    const dag::Operator& op = *state.stage(s).op;
    // Before a cache write or a split makes another stage of it.
    const StageView view(state, s);
    if (!op.is_reduction() || op.num_outputs() != 1 || !view.NeedsMultiLevelTiling() ||
        view.IsCacheWriteStage() || state.stage(s).is_partial_reduction)
      return std::nullopt;
    const std::optional<MatrixProduct> product = MatrixProductInAnyOrder(op);
    if (!product || !HasMatrixUnit(context.task.target, *product->unit)) return std::nullopt;
    for (const ir::Expr load : {product->first, product->second}) {
      if (!IsToTranspose(context, op, *product, load)) continue;
      const int stage = state.dag()->node(s).inputs[load->id].op;
      if (MayBeCopied(state, stage)) return Factor{stage, OrderOf(*product, load)};
    }
    return std::nullopt;
  }

  static bool IsToTranspose(const RuleContext& context, const dag::Operator& op,
                            const MatrixProduct& product, ir::Expr load) {
    if (product.IsAlongDepth(load)) return false;
    const bool is_readable = product.IsReadable(load);
    if (is_readable &&
        (product.unit->factor.bytes() == 2 || !HasWarpgroupUnits(context.task.target)))
      return false;
    const double least = context.parameters.least_transposed_mflop;
    if (MegaflopsOf(op) < (is_readable ? least : kLeastOfUnreadable * least)) return false;
    // Does the sum move along a dimension of its own?
    const int depth = DepthDimension(product, load);
    const ir::Expr index = load->arg(static_cast<size_t>(depth));
    return depth + 1 < static_cast<int>(load->num_args) &&
           product.MovesAlongDepth(index, load->type.bytes());
  }

  // Is it an input that the product alone reads, in one place, as it lies in memory, or with zeros around
  // it?
  static bool MayBeCopied(const State& state, int stage) {
    const dag::Dag& dag = *state.dag();
    if (dag.consumers(stage).size() != 1) return false;
    const std::vector<dag::Tensor>& inputs = dag.node(dag.consumers(stage)[0]).inputs;
    if (std::ranges::count(inputs, stage, &dag::Tensor::op) != 1) return false;
    const dag::Operator& op = *state.stage(stage).op;
    if (!op.is_placeholder()) {
      return !op.is_reduction() && op.num_outputs() == 1 && ir::CopiedLoad(op.body()) != nullptr;
    }
    const std::vector<int> packed = dag::PackedInputs(dag);
    return std::ranges::find(packed, stage) == packed.end();
  }

  static std::vector<int> OrderOf(const MatrixProduct& product, ir::Expr load) {
    const int depth = DepthDimension(product, load);
    std::vector<int> order;
    for (int d = 0; d < static_cast<int>(load->num_args); ++d) {
      if (d != depth) order.push_back(d);
    }
    order.push_back(depth);
    return order;
  }

  static double MegaflopsOf(const dag::Operator& op) {
    return 2e-6 * static_cast<double>(op.num_elements()) * static_cast<double>(op.reduce_size());
  }
};

}  // namespace

SketchRulePtr TransposedFactorRule() { return std::make_unique<TransposedFactor>(); }

}  // namespace kiln::search
