#include "search/sketch.h"

#include "compiler/schedule/steps/steps.h"
#include "search/sketch_rules/rules.h"

namespace kiln::search {
namespace {

using schedule::State;
using schedule::StepPtr;

// The steps, with the length of every SP that directly precedes an RF blank.
std::vector<StepPtr> BlankRfactorSplits(std::vector<StepPtr> steps) {
  for (size_t i = 1; i < steps.size(); ++i) {
    if (steps[i]->tag() != "RF" || steps[i - 1]->tag() != "SP") continue;
    const auto& split = static_cast<const schedule::SplitStep&>(*steps[i - 1]);
    steps[i - 1] = std::make_shared<schedule::SplitStep>(
        split.stage_id, split.loop, split.extent, std::vector<int64_t>(split.lengths.size(), 0),
        split.inner_to_outer);
  }
  return steps;
}

}  // namespace

std::vector<std::unique_ptr<SketchRule>> CpuSketchRules() {
  std::vector<SketchRulePtr> rules;
  rules.push_back(AlwaysInlineRule());
  rules.push_back(SimplifyConstTensorRule());
  rules.push_back(RfactorRule());
  rules.push_back(CacheWriteRule());
  rules.push_back(TilingWithFusionRule());
  rules.push_back(TilingRule());
  rules.push_back(SkipStageRule());
  return rules;
}

std::vector<std::unique_ptr<SketchRule>> GpuSketchRules() {
  std::vector<SketchRulePtr> rules;
  rules.push_back(CacheReadRule());
  rules.push_back(SpecialComputeLocationRule());
  rules.push_back(AlwaysInlineRule());
  rules.push_back(SimplifyConstTensorRule());
  rules.push_back(ReductionSplitRule());
  rules.push_back(CrossThreadReductionRule());
  rules.push_back(CacheWriteRule());
  rules.push_back(TilingWithFusionRule());
  rules.push_back(TilingRule());
  rules.push_back(SkipStageRule());
  return rules;
}

std::vector<Sketch> GenerateSketches(const RuleContext& context) {
  const auto rules = context.task.target.is_gpu() ? GpuSketchRules() : CpuSketchRules();
  return GenerateSketches(context, rules);
}

std::vector<Sketch> GenerateSketches(const RuleContext& context,
                                     std::span<const std::unique_ptr<SketchRule>> rules) {
  const State initial(context.task.dag);
  NextStates now, next;
  now.emplace_back(initial, initial.num_stages() - 1);
  std::vector<Sketch> sketches;
  while (!now.empty()) {
    next.clear();
    for (const auto& [state, s] : now) {
      if (s < 0) {
        sketches.push_back({state, BlankRfactorSplits(state.steps())});
        continue;
      }
      for (const auto& rule : rules) {
        const RuleAnswer answer = rule->Condition(context, state, s);
        if (answer == RuleAnswer::kSkip) continue;
        for (auto& item : rule->Apply(context, state, s)) next.push_back(std::move(item));
        if (answer == RuleAnswer::kApplyAndSkipRest) break;
      }
    }
    now.swap(next);
  }
  return sketches;
}

}  // namespace kiln::search
