// What a thread adds up of other blocks' shared memory, all of it before it stores the first
// result: such a load takes hundreds of cycles, and compilers move none across a store.
#pragma once

#include "compiler/ir/program.h"

namespace kiln::lower {

// In kernels whose blocks form clusters: a loop that adds up parts of a buffer of the cluster in
// registers and stores what follows from the sum becomes two, the sums of all iterations between
// them. Not where a thread would hold more than 64 words. Expects bound loops and allocs as
// BuildNests makes them; results stay the same.
void SumBeforeStoring(ir::Program& program);

}  // namespace kiln::lower
