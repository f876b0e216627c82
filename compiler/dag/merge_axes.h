// Axes that are never told apart, as one: of a 1x1 convolution [n, h, w, c] is as good as [n*h*w, c], a
// matrix.
#pragma once

#include "base/status.h"
#include "compiler/dag/dag.h"

namespace kiln::dag {

// The same computation on the same bytes, in which axes first to first + count - 1 of the operator are
// one, and with them the dimensions of all tensors that are read or written along them: inputs and outputs
// have fewer dimensions and as many elements. Operators keep their places and names; those without such
// axes are the same ones. InvalidArgument: what reads or writes the axes one by one. Cost: the square of the largest body at most.
StatusOr<DagPtr> MergeAxes(const Dag& dag, int op, int first, int count);

}  // namespace kiln::dag
