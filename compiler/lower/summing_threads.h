// Checks which threads add to an element that several threads can reach.
#pragma once

#include "base/status.h"
#include "compiler/ir/program.h"

namespace kiln::lower {

// Refuses, naming the stage, a sum into memory that the threads of a block share if the sum stands
// outside of their loops: every thread would add to the same elements. Writing the same value to
// them is no fault. Cost: a walk over the stores.
Status CheckSummingThreads(const ir::Program& program);

}  // namespace kiln::lower
