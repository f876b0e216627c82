#pragma once

#include "base/status.h"
#include "graph/graph.h"

namespace kiln::graph {

// Convolutions and pools of images with the channels second become ones with the channels last, and
// what stands between them follows, so that transposes are left only where images enter or leave,
// or where an operator means certain axes. Weights are transposed once, by fold-constants.
StatusOr<Graph> ChannelsLast(const Graph& graph);

}  // namespace kiln::graph
