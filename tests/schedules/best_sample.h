// The best schedule that samples of a GPU's search space have, by the analytic model.
#pragma once

#include "base/numbers/rng.h"
#include "search/space/task.h"

namespace kiln::search {

// Returns the seconds of the fastest of `draws` samples on the task's device, as the analytic model
// estimates them; infinity if none is valid.
double BestSampleSeconds(const Task& task, int draws, Rng& rng);

}  // namespace kiln::search
