// Checks that a graph is what graph.h says.
#pragma once

#include "base/status.h"
#include "graph/graph.h"

namespace kiln::graph {

// Checks that nodes are in topological order, every value is made once, operators give the values'
// types, constants have their types, and names are unique. Otherwise the error is Internal and
// names the node: the pass that made the graph has a bug. Cost: InferTypes for each node.
Status Verify(const Graph& graph);

}  // namespace kiln::graph
