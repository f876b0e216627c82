#include <fmt/ranges.h>

#include "compiler/schedule/steps/followed_step.h"
#include "compiler/schedule/steps/hash.h"
#include "compiler/schedule/steps/legality.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/split_loop.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {

StatusOr<int64_t> FollowedLength(const FollowFusedSplitStep& step, std::span<const StepPtr> steps) {
  if (step.src_steps.empty()) {
    return InvalidArgument("the list of followed steps is empty; expected the numbers of splits");
  }
  std::vector<int64_t> factors;
  bool blank = false;
  for (int number : step.src_steps) {
    KILN_ASSIGN_OR_RETURN(const SplitStep* source, FollowedStep(steps, number));
    const int available = static_cast<int>(source->lengths.size());
    if (step.level < 0 || step.level >= available) {
      return InvalidArgument("level {} is out of range; followed step #{} has lengths 0 to {}",
                             step.level, number, available - 1);
    }
    factors.push_back(source->lengths[step.level]);
    blank |= factors.back() == 0;
  }
  KILN_RETURN_IF_ERROR(CheckLengths(factors));
  int64_t product = blank ? 0 : 1;
  for (int64_t factor : factors) product *= factor;
  return product;
}

StatusOr<StepPtr> FollowFusedSplitStep::Parse(StepReader& reader) {
  const int stage = reader.Int("stage");
  const int loop = reader.Int("loop");
  std::vector<int> src_steps = reader.Ints("src_steps");
  const int level = reader.Int("level");
  const bool factor_or_nparts = reader.Flag("factor_or_nparts");
  return reader.Make<FollowFusedSplitStep>(stage, loop, std::move(src_steps), level,
                                           factor_or_nparts);
}

Status FollowFusedSplitStep::ApplyTo(State& state) const {
  KILN_RETURN_IF_ERROR(CheckSplittable(state, stage_id, loop, 1));
  KILN_ASSIGN_OR_RETURN(const int64_t length, FollowedLength(*this, state.steps()));
  SplitLoop(state, stage_id, loop, {&length, 1}, factor_or_nparts);
  return OkStatus();
}

std::string FollowFusedSplitStep::ToJson() const {
  return fmt::format("[\"FFSP\", {}, {}, [{}], {}, {:d}]", stage_id, loop,
                     fmt::join(src_steps, ", "), level, factor_or_nparts);
}

uint64_t FollowFusedSplitStep::Hash() const {
  return StepHash(kTag)
      .Add(stage_id)
      .Add(loop)
      .AddAll(src_steps)
      .Add(level)
      .Add(factor_or_nparts)
      .value();
}

}  // namespace kiln::schedule
