// Faults that a job builds into its trials, to see what becomes of them.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

// Adds faults such as "3:null-store": the number of a trial and the name of a fault.
// InvalidArgument lists the names.
Status AddFaults(const std::vector<std::string>& faults, v1::TuneOptions& options);

}  // namespace kiln::client
