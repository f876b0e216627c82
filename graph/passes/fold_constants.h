#pragma once

#include "base/status.h"
#include "graph/graph.h"

namespace kiln::graph {

// Computes the nodes whose inputs are all constants, with the reference evaluation; products, sums
// and moves of more than 64 KiB when somebody asks for their elements (Constant::Deferred). Nodes
// that make more than they read and more than 64 MiB are left (a constant that is broadcast). Cost:
// tens of nanoseconds for each operation.
StatusOr<Graph> FoldConstants(const Graph& graph);

}  // namespace kiln::graph
