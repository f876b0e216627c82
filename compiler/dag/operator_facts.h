// Facts of an operator's body that are computed once, when it is made.
#pragma once

#include <span>

#include "compiler/dag/dag.h"

namespace kiln::dag {

// `reduce_size`: product of the reduce extents. Linear in the distinct nodes of the bodies.
OperatorFacts ComputeFacts(std::span<const ir::Expr> bodies, Combiner combiner,
                           int64_t reduce_size);

}  // namespace kiln::dag
