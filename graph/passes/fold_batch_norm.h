#pragma once

#include "base/status.h"
#include "graph/graph.h"

namespace kiln::graph {

// batch_norm with constant statistics is x s + b with s = scale / sqrt(variance + epsilon) and
// b = bias - mean s: a mul and an add of constants along the channels, which fold-constants
// computes and fold-scales moves into weights.
StatusOr<Graph> FoldBatchNorm(const Graph& graph);

}  // namespace kiln::graph
