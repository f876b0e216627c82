// Properties of an operator's body that are computed once, when the operator is made.
// Floating-point operations are counted as by FlopEstimator of TVM v0.14
// (src/auto_scheduler/compute_dag.cc).
#pragma once

#include <vector>

#include "compiler/dag/dag.h"

namespace kiln::dag {

// `reduce_size` is the product of the reduce extents. Linear in the distinct nodes of the bodies.
BodyProperties ComputeProperties(const std::vector<ir::Expr>& bodies, const Reduction& reduction,
                                 int64_t reduce_size);

}  // namespace kiln::dag
