// The obvious evaluation of a DAG, operator by operator, for tests of steps that rewrite operators.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/dag/dag.h"
#include "compiler/ir/ndarray.h"

namespace kiln::schedule {

// The outputs of all operators that nobody reads. Placeholders get small whole numbers by their
// name and `seed`, so that sums are exact in any order.
std::vector<ir::NDArray> EvaluateDag(const dag::Dag& dag, uint64_t seed);

}  // namespace kiln::schedule
