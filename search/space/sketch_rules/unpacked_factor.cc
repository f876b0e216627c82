#include <optional>

#include "compiler/instructions/matrix_unit.h"
#include "compiler/schedule/inlining.h"
#include "compiler/schedule/steps/steps.h"
#include "search/space/matrix_product.h"
#include "search/space/sketch_rules/rules.h"
#include "search/space/stage_view.h"
#include "search/space/tiling.h"

namespace kiln::search {
namespace {

using schedule::State;

// The tile of such a factor has at most this share of the factor's bytes.
constexpr double kMostBytes = 0.75;

constexpr int64_t kFactorBytes = 2;

// A factor of 16 bits that is computed element by element from fewer bytes, as weights of 8 or 4
// bits with their scales are. It is computed where the product reads it, in registers: what lies in
// shared memory, and is copied there ahead of its use, is what it is computed of. Otherwise it is
// computed on its way to shared memory.
class UnpackedFactor final : public SketchRule {
 public:
  std::string_view name() const override { return "unpacked factor"; }

  RuleAnswer Condition(const RuleContext& context, const State& state, int s) const override {
    if (!context.parameters.unpacked_factors) return RuleAnswer::kSkip;
    if (IsInlined(state, s)) return RuleAnswer::kApplyAndSkipRest;
    return FactorOf(state, s) ? RuleAnswer::kApply : RuleAnswer::kSkip;
  }

  NextStates Apply(const RuleContext&, State state, int s) const override {
    if (IsInlined(state, s)) return One(std::move(state), s - 1);
    MustApply(state, std::make_shared<schedule::ComputeInlineStep>(*FactorOf(state, s)));
    return One(std::move(state), s);
  }

 private:
  static bool IsInlined(const State& state, int s) {
    return state.attach(s).kind == schedule::Attach::kInlined;
  }

  // Before a cache write or a split makes another stage of the product.
  static std::optional<int> FactorOf(const State& state, int s) {
    const dag::Operator& op = *state.stage(s).op;
    if (!op.is_reduction() || op.num_outputs() != 1 || state.stage(s).is_partial_reduction)
      return std::nullopt;
    const StageView view(state, s);
    if (!view.NeedsMultiLevelTiling() || view.IsCacheWriteStage()) return std::nullopt;
    const auto factors = instructions::MatrixFactorsOf(op.body());
    if (!factors || factors->unit->factor.bytes() != kFactorBytes) return std::nullopt;
    const std::vector<dag::Tensor>& inputs = state.dag()->node(s).inputs;
    const std::optional<MatrixProduct> product = MatrixProductOf(op);
    for (const ir::Expr load : {factors->a, factors->b}) {
      // Units read the first factor as it is.
      if (product && load->id != product->second->id) continue;
      const int factor = inputs[load->id].op;
      if (IsUnpacked(state, factor)) return factor;
    }
    return std::nullopt;
  }

  static bool IsUnpacked(const State& state, int s) {
    const dag::Operator& op = *state.stage(s).op;
    if (op.is_placeholder() || op.is_reduction() || op.num_outputs() != 1 ||
        state.dag()->is_output(s) || state.dag()->consumers(s).size() != 1 ||
        state.attach(s).kind != schedule::Attach::kRoot)
      return false;
    double read = 0;
    for (const int producer : state.dag()->producers(s)) read += BytesOf(*state.stage(producer).op);
    return read <= kMostBytes * BytesOf(op) && schedule::CheckInlinedSize(state, s).ok();
  }

  static double BytesOf(const dag::Operator& op) {
    return static_cast<double>(op.num_elements()) * static_cast<double>(op.type().bytes());
  }
};

}  // namespace

SketchRulePtr UnpackedFactorRule() { return std::make_unique<UnpackedFactor>(); }

}  // namespace kiln::search
