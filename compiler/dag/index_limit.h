// Finds the inputs that hold indices, and the limits of their values. Pure; linear in the accesses.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/dag/dag.h"

namespace kiln::dag {

// Returns for each op the smallest extent that its elements index, directly or after operators that
// only copy or convert them. 0 if the elements are not used as an index.
std::vector<int64_t> IndexLimits(const Dag& dag);

}  // namespace kiln::dag
