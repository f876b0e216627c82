#pragma once

#include "base/status.h"
#include "graph/graph.h"

namespace kiln::graph {

// Rewrites nodes into simpler ones:
//   what does nothing           identity, a cast, reshape, broadcast, slice, transpose or pad that
//                               changes nothing: left out, but where it is an output of the network
//   split                       slices, which may join what reads them
//   reshape of a reshape        one reshape; a transpose of a transpose: one transpose
//   transpose that moves        a reshape
//     extents of 1 alone
//   conv of zeros around x      conv of x with more padding
StatusOr<Graph> Simplify(const Graph& graph);

}  // namespace kiln::graph
