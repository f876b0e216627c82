// `kiln compile` of anything but a network: an operator, a text file, a task of a job, a record.
#pragma once

#include "base/status.h"
#include "client/cli/commands.h"
#include "client/compile/compiled_network.h"

namespace kiln::client {

// An operator or text file gets the best record of its computation for the target. A record, and
// the best record of a job's task, gets its own schedule, and its own target if none is given.
StatusOr<CompiledNetwork> CompileOne(const CompileFlags& flags, const Session& session);

}  // namespace kiln::client
