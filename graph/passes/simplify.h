#pragma once

#include "base/status.h"
#include "graph/graph.h"

namespace kiln::graph {

// Rewrites nodes into simpler ones:
//   a node without effect       identity, a cast, reshape, broadcast, slice, transpose or pad that
//                               changes nothing: left out, unless it is an output of the network
//   split                       slices, which may join their readers
//   reshape of a reshape        one reshape; a transpose of a transpose: one transpose
//   transpose that only moves   a reshape
//     extents of 1
//   conv of zeros around x      conv of x with more padding
StatusOr<Graph> Simplify(const Graph& graph);

}  // namespace kiln::graph
