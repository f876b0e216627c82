// The target that `kiln compile` compiles for.
#pragma once

#include <string>

#include "base/status.h"
#include "client/session.h"
#include "compiler/target/target.h"

namespace kiln::client {

// As jobs that ran for it have it, so that their records are found: what it leaves open is this
// machine's device (this_machine.h), but for CPUs of a scheduler's workers, who name themselves.
StatusOr<target::Target> CompilationTarget(const std::string& text, const Session& session);

}  // namespace kiln::client
