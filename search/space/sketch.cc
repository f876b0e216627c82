#include "search/space/sketch.h"

#include <algorithm>
#include <utility>

#include "compiler/schedule/steps/steps.h"
#include "search/space/search_space.h"
#include "search/space/sketch_rules/rules.h"

namespace kiln::search {
namespace {

using schedule::State;
using schedule::StepPtr;

// The steps, with the length of every SP that directly precedes an RF blank.
std::vector<StepPtr> BlankRfactorSplits(std::vector<StepPtr> steps) {
  for (size_t i = 1; i < steps.size(); ++i) {
    const auto* split = schedule::As<schedule::SplitStep>(*steps[i - 1]);
    if (split == nullptr || !schedule::Is<schedule::RfactorStep>(*steps[i])) continue;
    steps[i - 1] = std::make_shared<schedule::SplitStep>(
        split->stage_id, split->loop, split->extent, std::vector<int64_t>(split->lengths.size(), 0),
        split->inner_to_outer);
  }
  return steps;
}

// States of large computations take long to copy and to replay: as many steps as stages, each of
// which may renumber all stages.
size_t MostSketches(const Parameters& parameters, int operators) {
  constexpr int64_t kSquaresOfAll = 1 << 18;
  const int64_t most = kSquaresOfAll / (int64_t{operators} * operators);
  return static_cast<size_t>(std::clamp<int64_t>(most, 1, parameters.max_sketches));
}

using Level = std::vector<std::pair<State, int>>;

// Returns the answers of the batched rules for each state of the level.
std::vector<std::vector<BatchedRules::Applied>> AskBatched(const RuleContext& context,
                                                           const Level& level) {
  std::vector<std::vector<BatchedRules::Applied>> answers(level.size());
  if (context.batched == nullptr) return answers;
  std::vector<std::pair<State, int>> open;
  std::vector<size_t> places;
  for (size_t i = 0; i < level.size(); ++i) {
    if (level[i].second < 0) continue;
    open.push_back(level[i]);
    places.push_back(i);
  }
  if (open.empty()) return answers;
  for (BatchedRules::Applied& applied : context.batched->Apply(open))
    answers[places[applied.state]].push_back(std::move(applied));
  return answers;
}

// Adds what the batched rules and the rules make of the state, the first `most` of it.
void Expand(const RuleContext& context, std::span<const std::unique_ptr<SketchRule>> rules,
            std::vector<BatchedRules::Applied> batched, State state, int s, size_t most,
            NextStates& next) {
  size_t made = 0;
  for (BatchedRules::Applied& applied : batched) {
    for (size_t i = 0; i < applied.made.size() && made < most; ++i, ++made)
      next.push_back(std::move(applied.made[i]));
    if (applied.skip_rest || made == most) return;
  }
  for (const auto& rule : rules) {
    const RuleAnswer answer = rule->Condition(context, state, s);
    if (answer == RuleAnswer::kSkip) continue;
    const bool last = answer == RuleAnswer::kApplyAndSkipRest || &rule == &rules.back();
    NextStates results = rule->Apply(context, last ? std::move(state) : state, s);
    for (size_t i = 0; i < results.size() && made < most; ++i, ++made)
      next.push_back(std::move(results[i]));
    if (last || made == most) return;
  }
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
  rules.push_back(OnlineSoftmaxRule());
  rules.push_back(MergedRowsRule());
  rules.push_back(JoinedSumsRule());
  rules.push_back(MaxAndSumRule());
  rules.push_back(UnpackedFactorRule());
  rules.push_back(TransposedFactorRule());
  rules.push_back(ChosenRowsRule());
  rules.push_back(CacheReadRule());
  rules.push_back(CopyTileRule());
  rules.push_back(KeptRowsRule());
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
  return GenerateSketches(context, SpaceOf(context.task.target).sketch_rules());
}

std::vector<Sketch> GenerateSketches(const RuleContext& context,
                                     std::span<const std::unique_ptr<SketchRule>> rules) {
  NextStates now, next;
  now.emplace_back(State(context.task.dag), context.task.dag->size() - 1);
  const size_t most = MostSketches(context.parameters, context.task.dag->size());
  std::vector<Sketch> sketches;
  while (!now.empty()) {
    if (context.task.stop.stop_requested()) return {};
    next.clear();
    auto batched = AskBatched(context, now);
    if (context.task.stop.stop_requested()) return {};
    for (size_t i = 0; i < now.size(); ++i) {
      auto& [state, s] = now[i];
      if (s < 0) {
        std::vector<StepPtr> steps = BlankRfactorSplits(state.steps());
        sketches.push_back({std::move(state), std::move(steps)});
        continue;
      }
      const size_t others = sketches.size() + next.size() + (now.size() - i - 1);
      Expand(context, rules, std::move(batched[i]), std::move(state), s,
             std::max<size_t>(1, most - std::min(most, others)), next);
    }
    now.swap(next);
  }
  return sketches;
}

}  // namespace kiln::search
