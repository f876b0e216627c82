// Steps whose numbers of stages and steps are others: of a schedule that is carried over to another
// computation, or that has gained or lost steps.
#pragma once

#include <functional>

#include "compiler/schedule/step.h"

namespace kiln::schedule {

struct Renumbering {
  std::function<int(int)> stage;  // at the time that the step is applied
  std::function<int(int)> step;   // in the list; of those that a step follows
};

// The same step with these numbers. Each number is asked for once, the stage that the step works on
// first.
StepPtr Renumbered(const Step& step, const Renumbering& numbers);

}  // namespace kiln::schedule
