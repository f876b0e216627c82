// The computations that are known without having been tuned here: what the keys of an imported log
// may stand for.
#pragma once

#include <vector>

#include "store/record.h"

namespace kiln::scheduler {

// Those of compiler/dag/ops/known_workloads.h, as the store keeps them.
std::vector<store::Computation> LibraryComputations();

}  // namespace kiln::scheduler
