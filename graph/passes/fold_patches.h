// Gives convolutions of disjoint patches more channels.
#pragma once

#include "base/status.h"
#include "graph/graph.h"

namespace kiln::graph {

// A convolution whose windows stand side by side along the image's last axis, as the first one of a
// vision transformer, reads each row of a window as one piece of the image: its KW pixels of C
// channels are one pixel of KW C channels, and the window is one pixel wide. Three channels fill no
// tile of matrix units, 48 do. Changes such convolutions with the channels last, of one group, of
// channels that are no multiple of 16, where KW C is one. The image and the weights are reshaped,
// which moves no data.
StatusOr<Graph> FoldPatches(const Graph& graph);

}  // namespace kiln::graph
