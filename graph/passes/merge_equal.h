#pragma once

#include "base/status.h"
#include "graph/graph.h"

namespace kiln::graph {

// Merges common subexpressions: nodes of one operator with the same attributes over the same values
// become one node, and constants with the same elements become one constant.
StatusOr<Graph> MergeEqual(const Graph& graph);

}  // namespace kiln::graph
