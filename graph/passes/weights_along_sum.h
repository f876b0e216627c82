#pragma once

#include "base/status.h"
#include "graph/graph.h"
#include "graph/passes/passes.h"

namespace kiln::graph {

// Changes weights of convolutions with the channels last that have one of the types of
// PassOptions::along_sum: their output channels come first (output_first), and fold-constants
// computes them. Nothing changes if the channels are not the longest extent of the sum, as for
// images of three colours.
StatusOr<Graph> WeightsAlongSum(const Graph& graph, const PassOptions& options);

}  // namespace kiln::graph
