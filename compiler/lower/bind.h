// Binds what a GPU schedule left unbound: a kernel without any bound loop would run in one thread.
#pragma once

#include "base/status.h"
#include "compiler/schedule/state.h"

namespace kiln::lower {

// For every root stage in whose nest no loop is bound: its leading spatial loops are fused, split
// by up to 256 and bound to blockIdx.x and threadIdx.x. With that the unscheduled program is one
// thread per output element. A nest that has stages attached or annotations among those loops is
// left as it is.
StatusOr<schedule::State> BindUnbound(const schedule::State& state);

}  // namespace kiln::lower
