#pragma once

#include "base/status.h"
#include "graph/graph.h"

namespace kiln::graph {

// Moves multiplications by a constant number for each channel into the weights of a neighbouring
// product, like TVM's FoldScaleAxis (relay/transforms/fold_scale_axis.cc):
//   back     conv(x, w) s             -> conv(x, w s)
//            (conv(x, w) + b) s       -> conv(x, w s) + b s
//   forward  conv(x s, w)             -> conv(x, s w)
//            conv(relu(x s + b), w)   -> conv(relu(x + b / s), s w)   if s is positive
// A value stays unchanged if others read it too, or if it is an output of the network. Forward, all
// its readers must be such products.
StatusOr<Graph> FoldScales(const Graph& graph);

}  // namespace kiln::graph
