// Is a graph what graph.h says it is?
#pragma once

#include "base/status.h"
#include "graph/graph.h"

namespace kiln::graph {

// Nodes in topological order; every value made once; types that come out of the operators; constants
// of their types; names that are unique. Internal, naming the node, where that is not so: a bug of
// the pass that made the graph. Cost: InferTypes for each node.
Status Verify(const Graph& graph);

}  // namespace kiln::graph
