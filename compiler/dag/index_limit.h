// Which inputs hold indices, and how large those may be. Pure; linear in the accesses.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/dag/dag.h"

namespace kiln::dag {

// Of each op the smallest extent that its elements are used as an index of, directly or after
// operators that only copy or convert them; 0 when they are not.
std::vector<int64_t> IndexLimits(const Dag& dag);

}  // namespace kiln::dag
