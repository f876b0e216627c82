// Merges axes that are never told apart into one. For example, a 1x1 convolution [n, h, w, c]
// becomes a product of a matrix [n*h*w, c].
#pragma once

#include "base/status.h"
#include "compiler/dag/dag.h"

namespace kiln::dag {

// Returns the same computation on the same bytes, in which axes first to first + count - 1 of the
// operator are one axis. The dimensions of all tensors that are read or written along them are
// merged as well: inputs and outputs have fewer dimensions and as many elements. Operators keep
// their places and names, and operators without such axes stay the same objects. InvalidArgument:
// an operator reads or writes the axes one by one. Cost: at most the square of the largest body.
StatusOr<DagPtr> MergeAxes(const Dag& dag, int op, int first, int count);

}  // namespace kiln::dag
