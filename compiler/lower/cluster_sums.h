// Takes all sums over the shared memory of other blocks before the first result is stored. Such a
// load takes hundreds of cycles, and compilers move no load across a store.
#pragma once

#include "compiler/ir/program.h"

namespace kiln::lower {

// Changes kernels whose blocks form clusters: a loop that adds up parts of a buffer of the cluster
// and stores a result of the sum becomes two loops. The first takes the sums of all iterations into
// registers, the second stores. A loop stays as it is if a thread would hold more than 64 words.
// Expects bound loops and allocs as BuildNests makes them. Results stay the same.
void SumBeforeStoring(ir::Program& program);

}  // namespace kiln::lower
