// Builds loop nests from bounds. Each root stage becomes a kernel. An attached stage is emitted
// inside the loop that it is attached to, before the rest of that loop's body, with a buffer of the
// size of its region.
//
// A reduction is initialised in a nest of its own just outside its outermost reduction loop. Guards
// stand at the outermost loop that knows their variables, so that the loops inside them are free of
// conditions.
#pragma once

#include <stop_token>

#include "compiler/ir/program.h"
#include "compiler/lower/bounds.h"
#include "compiler/schedule/state.h"

namespace kiln::lower {

// On a GPU, an attached stage inside a loop bound to threads has a buffer in each thread. Any other
// attached stage, and any stage with MemoryScope::kShared, is in shared memory with barriers around
// its nest. A reduction loop bound to threads becomes a tree over shared memory.
//
// If a stage's buffering is more than 1, its shared tiles are fetched ahead (fetch_ahead.h),
// provided that its loops allow it. Otherwise the stage is lowered as with 1.
//
// The bounds' simplifier gets further variables (initialisation loops). The program shares the
// bounds' pool. Cancelled if `stop` is requested.
StatusOr<ir::Program> BuildNests(const schedule::State& state, Bounds& bounds, bool gpu,
                                 const std::stop_token& stop = {});

}  // namespace kiln::lower
