// Compiles anything but a network: an operator, a text file, a task of a job, a record.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "client/cli/subject_flags.h"
#include "client/compile/compiled_network.h"
#include "client/session.h"
#include "client/shipped/default_records.h"

namespace kiln::client {

struct ComputationToCompile {
  // Its target may be "": the default, or the target of the record.
  SubjectFlags subject;
  // The device model, for people; "": that of the records.
  std::string device;
  // True: a computation that was never tuned is refused.
  bool strict = false;
  uint64_t seed = 1;
  DefaultRecords defaults = {};
};

// An operator or text file gets the best record of its computation for the target. A record, and
// the best record of a job's task, gets its own schedule, and its own target if none is given.
StatusOr<CompiledNetwork> CompileOne(const ComputationToCompile& wanted, const Session& session);

}  // namespace kiln::client
