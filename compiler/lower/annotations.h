// Which annotations a target supports, and on which loops.
#pragma once

#include "base/status.h"
#include "compiler/schedule/state.h"

namespace kiln::lower {

// Refuses, naming stage and loop: thread and block bindings on a CPU, parallel or vectorized
// reduction loops, fused spatial-with-reduce loops, tensorize.
Status CheckAnnotations(const schedule::State& state, bool gpu);

}  // namespace kiln::lower
