#include "compiler/schedule/steps/renumber.h"

#include <memory>

#include "base/status.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

std::vector<int> Mapped(const std::vector<int>& numbers, const std::function<int(int)>& map) {
  std::vector<int> mapped;
  for (int number : numbers) mapped.push_back(map(number));
  return mapped;
}

// For kinds whose only number is the stage that they work on.
template <typename StepT>
void RenumberMore(StepT&, const Renumbering&) {}

template <>
void RenumberMore(FollowSplitStep& step, const Renumbering& numbers) {
  step.src_step = numbers.step(step.src_step);
}
template <>
void RenumberMore(FollowFusedSplitStep& step, const Renumbering& numbers) {
  step.src_steps = Mapped(step.src_steps, numbers.step);
}
template <>
void RenumberMore(ComputeAtStep& step, const Renumbering& numbers) {
  step.target_stage = numbers.stage(step.target_stage);
}
template <>
void RenumberMore(CacheWriteStep& step, const Renumbering& numbers) {
  step.joined = Mapped(step.joined, numbers.stage);
}
template <>
void RenumberMore(MoveStageStep& step, const Renumbering& numbers) {
  step.before = numbers.stage(step.before);
}
template <>
void RenumberMore(CacheReadStep& step, const Renumbering& numbers) {
  step.readers = Mapped(step.readers, numbers.stage);
}

template <typename StepT>
bool RenumberAs(const Step& step, const Renumbering& numbers, StepPtr& result) {
  const StepT* const of_kind = As<StepT>(step);
  if (of_kind == nullptr) return false;
  auto copy = std::make_shared<StepT>(*of_kind);
  copy->stage_id = numbers.stage(copy->stage_id);
  RenumberMore(*copy, numbers);
  result = std::move(copy);
  return true;
}

template <typename... StepTs>
StepPtr RenumberAny(const Step& step, const Renumbering& numbers, StepList<StepTs...>) {
  StepPtr result;
  const bool found = (RenumberAs<StepTs>(step, numbers, result) || ...);
  KILN_CHECK(found, "step {}", step.tag());
  return result;
}

}  // namespace

StepPtr Renumbered(const Step& step, const Renumbering& numbers) {
  return RenumberAny(step, numbers, StepKinds());
}

}  // namespace kiln::schedule
