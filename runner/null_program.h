// The null device runs nothing, so that the code around devices can be tested without one.
#pragma once

#include "proto/trial.pb.h"

namespace kiln::runner {

// Returns a cost that is a function of the artifact's bytes: 10 us to 10 ms, uniform in its
// logarithm, the same on every machine.
double NullCost(const v1::Artifact& artifact);

}  // namespace kiln::runner
