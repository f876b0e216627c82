// Binds the loops that a GPU schedule left unbound. A kernel without any bound loop would run in
// one thread.
#pragma once

#include "base/status.h"
#include "compiler/schedule/state.h"

namespace kiln::lower {

// Treats every root stage in whose nest no loop is bound: its leading spatial loops are fused,
// split by up to 256 and bound to blockIdx.x and threadIdx.x. The unscheduled program then has one
// thread per output element. A nest that has attached stages or annotations among those loops stays
// as it is.
StatusOr<schedule::State> BindUnbound(const schedule::State& state);

}  // namespace kiln::lower
