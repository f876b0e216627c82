// A maximum and the sum of exponentials below it, as softmax and its like have them, in one pass
// over a few long rows, which blocks share. What both read is read once, and the parts of a row are
// joined once: three kernels, not five, of which each takes a microsecond and more.
#include <memory>
#include <vector>

#include "compiler/schedule/steps/joined_sums.h"
#include "compiler/schedule/steps/steps.h"
#include "search/space/sketch_rules/rules.h"
#include "search/space/tiling.h"

namespace kiln::search {
namespace {

using schedule::State;

class MaxAndSum final : public SketchRule {
 public:
  std::string_view name() const override { return "maximum and sum"; }

  RuleAnswer Condition(const RuleContext& context, const State& state, int s) const override {
    const schedule::StepPtr step = StepFor(context, state, s);
    if (step == nullptr) return RuleAnswer::kSkip;
    State joined = state;
    return joined.Apply(step).ok() ? RuleAnswer::kApply : RuleAnswer::kSkip;
  }

  // Both stages copy from the pair now, and are inlined next.
  NextStates Apply(const RuleContext& context, State state, int s) const override {
    MustApply(state, StepFor(context, state, s));
    return One(std::move(state), s + 1);
  }

 private:
  // Null: stage s is no such sum.
  static schedule::StepPtr StepFor(const RuleContext& context, const State& state, int s) {
    const schedule::Stage& stage = state.stage(s);
    if (stage.is_placeholder() || !stage.op->is_reduction() || stage.is_partial_reduction)
      return nullptr;
    int max = 0;
    while (max < s &&
           (state.stage(max).is_placeholder() || !schedule::IsSumBelow(*state.dag(), max, s)))
      ++max;
    // Few sums have a maximum, and the rows take an analysis of the whole DAG.
    if (max == s || !HasFewLongRows(context, state, s)) return nullptr;
    return std::make_shared<schedule::CacheWriteStep>(max, "global", std::vector<int>{s});
  }
};

}  // namespace

SketchRulePtr MaxAndSumRule() { return std::make_unique<MaxAndSum>(); }

}  // namespace kiln::search
