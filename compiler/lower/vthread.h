// Virtual threads: a vthread loop becomes copies of what depends on it, side by side, inside all
// other loops.
//
// Without this a vthread loop would repeat everything inside it, cooperative fetches into shared
// memory included. After it:
//   * a local buffer that is written differently by each virtual thread has one more dimension,
//     outermost: its number;
//   * a statement that depends on the virtual thread stands in an unrolled loop over it, as far
//     inside as possible, so that the copies are interleaved and share what they load;
//   * everything else (fetches, barriers, loops) is executed once.
#pragma once

#include "compiler/ir/program.h"

namespace kiln::lower {

// Precondition: extents of loops inside do not depend on the virtual thread (they are static), and
// no barrier stands under a condition that does. The meaning is that of the serial loop.
void InjectVThreads(ir::Program& program);

}  // namespace kiln::lower
