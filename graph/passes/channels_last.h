#pragma once

#include "base/status.h"
#include "graph/graph.h"

namespace kiln::graph {

// Changes convolutions and pools of images with the channels second into ones with the channels
// last. Nodes between them follow, so that transposes are left only where images enter or leave, or
// where an operator means certain axes. fold-constants transposes the weights once.
StatusOr<Graph> ChannelsLast(const Graph& graph);

}  // namespace kiln::graph
