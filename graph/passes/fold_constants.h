#pragma once

#include "base/status.h"
#include "graph/graph.h"

namespace kiln::graph {

// Computes the nodes whose inputs are all constants, with the reference evaluation. Products, sums
// and moves of more than 64 KiB are computed at the first access to their elements
// (Constant::Deferred). Nodes that make more than they read and more than 64 MiB are left, such as
// a constant that is broadcast. Cost: tens of nanoseconds for each operation.
StatusOr<Graph> FoldConstants(const Graph& graph);

}  // namespace kiln::graph
