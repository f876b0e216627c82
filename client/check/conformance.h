// kiln conformance: random jobs over many workloads, and what became of every candidate. What
// passes the checks before code generation must launch, and must give the right answer. The set
// "matrix-units" has products and convolutions for each type that matrix units multiply: of float32
// alone where the target allows TF32, else of the others; what can be computed by them is. The set "large" has
// tensors of more than 2^31 elements (large_workloads.h).
#pragma once

#include <string>

#include "base/status.h"
#include "client/session.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

struct ConformanceFlags {
  std::string target;
  // Or "matrix-units", "large"; "special-values" is another command: special_values.h.
  std::string set = "usual";
  std::string only;  // workloads whose description has this
  v1::TuneOptions options;
  std::string log_folder;
};
// A random job per workload on this machine's device, into the session's database. The exit
// status: 1 when a candidate failed.
StatusOr<int> ConformanceCommand(const ConformanceFlags& flags, const Session& session);

}  // namespace kiln::client
