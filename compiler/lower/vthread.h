// Virtual threads: a vthread loop becomes copies of the statements that depend on it, side by side,
// inside all other loops.
//
// Without this pass a vthread loop would repeat everything inside it, including cooperative fetches
// into shared memory. After the pass:
//   * a local buffer to which each virtual thread writes different values has one more dimension,
//     outermost, for the number of the virtual thread;
//   * a statement that depends on the virtual thread stands in an unrolled loop over it, as far
//     inside as possible, so that the copies are interleaved and share their loads;
//   * everything else (fetches, barriers, loops) is executed once.
#pragma once

#include "compiler/ir/program.h"

namespace kiln::lower {

// Precondition: extents of loops inside do not depend on the virtual thread (they are static), and
// no barrier stands under a condition that does. The meaning is that of the serial loop.
void InjectVThreads(ir::Program& program);

}  // namespace kiln::lower
