#include "compiler/schedule/steps/followed_step.h"
#include "compiler/schedule/steps/hash.h"
#include "compiler/schedule/steps/legality.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/split_loop.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {

StatusOr<const SplitStep*> FollowedStep(std::span<const StepPtr> steps, int number) {
  if (number < 0 || number >= static_cast<int>(steps.size())) {
    return InvalidArgument("followed step #{} does not exist; expected an earlier split, #0 to #{}",
                           number, static_cast<int>(steps.size()) - 1);
  }
  const Step& step = *steps[number];
  if (const auto* split = As<SplitStep>(step)) return split;
  return InvalidArgument("followed step #{} is a {} ({}); expected a split (SP)", number,
                         step.name(), step.tag());
}

StatusOr<std::vector<int64_t>> FollowedLengths(const FollowSplitStep& step,
                                               std::span<const StepPtr> steps) {
  KILN_ASSIGN_OR_RETURN(const SplitStep* source, FollowedStep(steps, step.src_step));
  const int available = static_cast<int>(source->lengths.size());
  if (step.n_split < 1 || step.n_split > available + 1) {
    return InvalidArgument(
        "n_split {} is out of range; followed step #{} has {} lengths, expected "
        "1 to {}",
        step.n_split, step.src_step, available, available + 1);
  }
  std::vector<int64_t> lengths(source->lengths.begin(), source->lengths.begin() + step.n_split - 1);
  // Blank if any of the merged lengths is blank.
  int64_t last = 1;
  for (int i = step.n_split - 1; i < available; ++i) last *= source->lengths[i];
  lengths.push_back(last);
  return lengths;
}

StatusOr<StepPtr> FollowSplitStep::Parse(StepReader& reader) {
  const int stage = reader.Int("stage");
  const int loop = reader.Int("loop");
  const int src_step = reader.Int("src_step");
  const int n_split = reader.Int("n_split");
  return reader.Make<FollowSplitStep>(stage, loop, src_step, n_split);
}

Status FollowSplitStep::ApplyTo(State& state) const {
  KILN_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, FollowedLengths(*this, state.steps()));
  KILN_RETURN_IF_ERROR(CheckSplittable(state, stage_id, loop, lengths.size()));
  SplitLoop(state, stage_id, loop, lengths, true);
  return OkStatus();
}

std::string FollowSplitStep::ToJson() const {
  return fmt::format("[\"FSP\", {}, {}, {}, {}]", stage_id, loop, src_step, n_split);
}

uint64_t FollowSplitStep::Hash() const {
  return StepHash(kTag).Add(stage_id).Add(loop).Add(src_step).Add(n_split).value();
}

}  // namespace kiln::schedule
