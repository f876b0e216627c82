// The null device runs nothing, so that the code around devices can be tested without one.
#pragma once

#include <string>

#include "base/status.h"
#include "proto/trial.pb.h"

namespace kiln::runner {

// Returns a cost that is a function of the artifact's bytes: 10 us to 10 ms, uniform in its
// logarithm, the same on every machine.
double NullCost(const v1::Artifact& artifact);

// Returns the seconds of the null device's canary: 1 ms, or the number in the file if there is one,
// so that a test can make the device slow. "" = no file. InvalidArgument: the file has no time
// above 0.
StatusOr<double> NullCanary(const std::string& file);

}  // namespace kiln::runner
