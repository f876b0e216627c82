// Loop nests: bounds -> program. Each root stage becomes a kernel; attached stages are emitted inside the loop they are
// attached to, before the rest of its body, with a buffer of the size of their region.
//
// A reduction is initialised in a nest of its own just outside its outermost reduction loop. Guards stand at the outermost
// loop that knows their variables, so that the loops inside them are free of conditions.
#pragma once

#include "compiler/ir/program.h"
#include "compiler/lower/bounds.h"
#include "compiler/schedule/state.h"

namespace kiln::lower {

// The bounds' simplifier gets further variables (initialisation loops). The program shares the bounds' pool.
ir::Program BuildNests(const schedule::State& state, Bounds& bounds);

}  // namespace kiln::lower
