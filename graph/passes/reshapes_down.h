// Moves reshapes behind elementwise functions, so that a product's kernel takes these in.
#pragma once

#include "base/status.h"
#include "graph/graph.h"

namespace kiln::graph {

// A reshape between a product and an elementwise function of it, as in f(reshape(x W)), ends the
// product's kernel (graph/partition.h). The function is computed before the reshape instead:
// reshape(f(x W)). Its other inputs are numbers, or have the shape of its result, or lie along last
// axes that the reshape leaves as they are. All nodes that read the reshape are such
// functions, as in a GELU that is written by single operators; otherwise it stays where it is.
StatusOr<Graph> ReshapesDown(const Graph& graph);

}  // namespace kiln::graph
