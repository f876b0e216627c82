#pragma once

#include "base/status.h"
#include "graph/graph.h"
#include "graph/passes/passes.h"

namespace kiln::graph {

// Weights of convolutions with the channels last that have one of the types of
// PassOptions::along_sum lie with their output channels first (output_first), which
// fold-constants computes. Nothing changes where the channels are not what a sum runs over
// longest, as of images of three colours.
StatusOr<Graph> WeightsAlongSum(const Graph& graph, const PassOptions& options);

}  // namespace kiln::graph
