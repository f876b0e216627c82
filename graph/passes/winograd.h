#pragma once

#include "base/status.h"
#include "graph/graph.h"
#include "graph/passes/passes.h"

namespace kiln::graph {

// Replaces conv with 3x3 kernels, stride 1 (on CPUs 2 too), one group, equal padding on all sides,
// channels last, float32 or float64, and constant weights. It becomes winograd_conv with
// winograd_weights, which fold-constants computes.
StatusOr<Graph> UseWinograd(const Graph& graph, const PassOptions& options);

}  // namespace kiln::graph
