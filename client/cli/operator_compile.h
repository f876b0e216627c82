// What `kiln compile` does with anything but a network: an operator, a text file, a task of a job, a
// record.
#pragma once

#include "base/status.h"
#include "client/cli/commands.h"
#include "client/compile/compiled_network.h"

namespace kiln::client {

// An operator or text file gets the best record of its computation for the target; a record, and the
// best one of a job's task, its own schedule, for its own target where none is given.
StatusOr<CompiledNetwork> CompileOne(const CompileFlags& flags, const Session& session);

}  // namespace kiln::client
