// The null device: runs nothing, so that everything around a device can be tested without one.
#pragma once

#include "proto/trial.pb.h"

namespace kiln::runner {

// A function of the bytes: 10 us to 10 ms, uniform in its logarithm, the same everywhere.
double NullCost(const v1::Artifact& artifact);

}  // namespace kiln::runner
