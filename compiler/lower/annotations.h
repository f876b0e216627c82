// The annotations that a target supports, and the loops that may have them.
#pragma once

#include "base/status.h"
#include "compiler/schedule/state.h"

namespace kiln::lower {

// Refuses, naming stage and loop: thread and block bindings on a CPU, parallel or vectorized
// reduction loops, loops fused of spatial and reduce axes, tensorize.
Status CheckAnnotations(const schedule::State& state, bool gpu);

}  // namespace kiln::lower
