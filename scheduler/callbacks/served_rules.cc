#include "scheduler/callbacks/served_rules.h"

#include <algorithm>

#include "compiler/schedule/step.h"

namespace kiln::scheduler {
namespace {

constexpr char kName[] = "the sketch rules";
// A rule decides each stage once or a few times. More levels than that mean that a rule makes
// stages, or stays at one, for ever.
constexpr int kLevelsPerStage = 8, kMoreLevels = 64;

// Tells whether the steps begin with those of the state.
bool Continues(const std::vector<schedule::StepPtr>& steps, const schedule::State& state) {
  const std::vector<schedule::StepPtr>& before = state.steps();
  return steps.size() >= before.size() &&
         std::equal(before.begin(), before.end(), steps.begin(),
                    [](const auto& a, const auto& b) { return a->ToJson() == b->ToJson(); });
}

StatusOr<schedule::State> Continued(const schedule::State& before, const std::string& json) {
  KILN_ASSIGN_OR_RETURN(const std::vector<schedule::StepPtr> steps, schedule::ParseSteps(json));
  if (!Continues(steps, before)) {
    return InvalidArgument(
        "its steps do not begin with the {} steps of the state that the rule was given",
        before.steps().size());
  }
  schedule::State state = before;
  for (size_t i = before.steps().size(); i < steps.size(); ++i)
    KILN_RETURN_IF_ERROR(state.Apply(steps[i]));
  return state;
}

}  // namespace

std::vector<search::BatchedRules::Applied> ServedRules::Apply(
    std::span<const std::pair<schedule::State, int>> states) {
  StatusOr<std::vector<Applied>> answer = Answer(states);
  if (answer.ok()) return *std::move(answer);
  // A call that failed is noted already, and one that was cancelled is no failure.
  if (answer.status().code() != StatusCode::kCancelled) search_.Fail(answer.status()).IgnoreError();
  return {};
}

StatusOr<std::vector<search::BatchedRules::Applied>> ServedRules::Answer(
    std::span<const std::pair<schedule::State, int>> states) {
  const int most = kLevelsPerStage * states[0].first.initial_dag()->size() + kMoreLevels;
  if (++levels_ > most) {
    return FailedPrecondition(
        "{} have not decided all stages after {} calls: a rule must return a smaller stage number "
        "than it was given, at the end -1",
        kName, most);
  }
  v1::CallbackRequest request;
  v1::RuleCall& call = *request.mutable_rules();
  call.set_task_index(static_cast<uint32_t>(task_));
  for (const auto& [state, stage] : states) {
    v1::RuleState& sent = *call.add_states();
    sent.set_steps(schedule::PrintSteps(state.steps()));
    sent.set_stage(stage);
  }
  KILN_ASSIGN_OR_RETURN(const v1::CallbackReply reply, search_.Call(std::move(request), kName));
  std::vector<Applied> all;
  for (const v1::AppliedRule& applied : reply.applied()) {
    const auto rules = static_cast<uint32_t>(search_.served().sketch_rules_size());
    if (applied.state() >= states.size() || applied.rule() >= rules) {
      return InvalidArgument("{} answered for state {} and rule {}, expected below {} and {}",
                             kName, applied.state(), applied.rule(), states.size(), rules);
    }
    if (!all.empty() && applied.state() < all.back().state) {
      return InvalidArgument("{} answered for state {} after state {}, expected ascending states",
                             kName, applied.state(), all.back().state);
    }
    const std::string& rule = search_.served().sketch_rules(static_cast<int>(applied.rule()));
    StatusOr<search::NextStates> made = Made(states[applied.state()].first, applied);
    KILN_RETURN_IF_ERROR(Annotate(made.status(), fmt::format("sketch rule {}, stage {}", rule,
                                                             states[applied.state()].second)));
    all.push_back({applied.state(), applied.skip_rest(), *std::move(made)});
  }
  return all;
}

StatusOr<search::NextStates> ServedRules::Made(const schedule::State& before,
                                               const v1::AppliedRule& applied) const {
  search::NextStates made;
  for (int i = 0; i < applied.made_size(); ++i) {
    const v1::RuleState& next = applied.made(i);
    StatusOr<schedule::State> state = Continued(before, next.steps());
    KILN_RETURN_IF_ERROR(Annotate(state.status(), fmt::format("state {} that it made", i)));
    if (next.stage() < -1 || next.stage() >= state->num_stages()) {
      return InvalidArgument("state {} that it made goes on with stage {}, expected -1 to {}", i,
                             next.stage(), state->num_stages() - 1);
    }
    made.emplace_back(*std::move(state), next.stage());
  }
  return made;
}

}  // namespace kiln::scheduler
