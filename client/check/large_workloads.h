// Computations of which one tensor has more than 2^31 elements. Index arithmetic in 32 bits gives
// wrong answers or none. They need a device with some 40 GiB of memory.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"

namespace kiln::client {

struct NamedComputation {
  std::string name;
  dag::DagPtr dag;
};

// Returns an element-wise computation, a reduction, a transposition, and a gather whose offsets
// pass 2^31.
StatusOr<std::vector<NamedComputation>> LargeWorkloads();

}  // namespace kiln::client
