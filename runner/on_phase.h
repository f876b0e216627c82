// The phases of a run, as the child process reports them to the daemon (child.proto).
#pragma once

#include <functional>

#include "runner/child.pb.h"

namespace kiln::runner {

// Called as each phase begins.
using OnPhase = std::function<void(wire::Phase)>;

}  // namespace kiln::runner
