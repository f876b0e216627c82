// The split that FSP and FFSP follow.
#pragma once

#include <span>

#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {

// Returns step `number`. Refuses it if it does not exist or is not an SP.
StatusOr<const SplitStep*> FollowedStep(std::span<const StepPtr> steps, int number);

}  // namespace kiln::schedule
