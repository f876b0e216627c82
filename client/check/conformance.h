// kiln conformance runs random jobs over many workloads, and reports the outcome of every
// candidate. A candidate that passes the checks before code generation must launch, and must give
// the right answer. The set "matrix-units" has products and convolutions for each type that matrix
// units multiply: only float32 if the target allows TF32, else the other types. Computations that
// matrix units can compute are computed by them. The set "large" has tensors of more than 2^31
// elements (large_workloads.h).
#pragma once

#include <string>

#include "base/status.h"
#include "client/session.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

struct ConformanceFlags {
  std::string target;
  // "usual", "matrix-units" or "large". The set "special-values" has its own function:
  // special_values.h.
  std::string set = "usual";
  // Selects the workloads whose description contains this text.
  std::string only;
  v1::TuneOptions options;
  std::string log_folder;
};
// Runs a random job per workload on this machine's device, into the session's database. Returns the
// exit status: 1 if a candidate failed.
StatusOr<int> ConformanceCommand(const ConformanceFlags& flags, const Session& session);

}  // namespace kiln::client
