#pragma once

#include "base/status.h"
#include "graph/graph.h"

namespace kiln::graph {

// Common subexpressions: nodes of one operator with the same attributes over the same values become
// one, and so do constants with the same elements.
StatusOr<Graph> MergeEqual(const Graph& graph);

}  // namespace kiln::graph
