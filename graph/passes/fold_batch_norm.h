#pragma once

#include "base/status.h"
#include "graph/graph.h"

namespace kiln::graph {

// Replaces batch_norm with constant statistics. It is x s + b with s = scale / sqrt(variance +
// epsilon) and b = bias - mean s: a mul and an add of constants along the channels. fold-constants
// computes these constants, and fold-scales moves them into weights.
StatusOr<Graph> FoldBatchNorm(const Graph& graph);

}  // namespace kiln::graph
