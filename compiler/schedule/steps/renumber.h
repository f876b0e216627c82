// Gives steps other numbers of stages and steps, for a schedule that is carried over to another
// computation, or that has gained or lost steps.
#pragma once

#include <functional>

#include "compiler/schedule/step.h"

namespace kiln::schedule {

struct Renumbering {
  // Maps the number of a stage at the time when the step is applied.
  std::function<int(int)> stage;
  // Maps the number in the list of a step that another one follows.
  std::function<int(int)> step;
};

// Returns the same step with these numbers. Each number is asked for once. The stage that the step
// works on comes first.
StepPtr Renumbered(const Step& step, const Renumbering& numbers);

}  // namespace kiln::schedule
