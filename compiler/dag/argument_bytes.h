// The least traffic of a computation, for rooflines.
#pragma once

#include "compiler/dag/dag.h"

namespace kiln::dag {

// Returns the number of bytes of all inputs and outputs: what the computation must at least read
// and write.
double ArgumentBytes(const Dag& dag);

}  // namespace kiln::dag
