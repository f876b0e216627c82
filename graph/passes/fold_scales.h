#pragma once

#include "base/status.h"
#include "graph/graph.h"

namespace kiln::graph {

// Moves products with a constant number for each channel into the weights of a product beside them,
// as TVM's FoldScaleAxis does (relay/transforms/fold_scale_axis.cc):
//   back     conv(x, w) s             -> conv(x, w s)
//            (conv(x, w) + b) s       -> conv(x, w s) + b s
//   forward  conv(x s, w)             -> conv(x, s w)
//            conv(relu(x s + b), w)   -> conv(relu(x + b / s), s w)   where s is positive
// A value that others read too, or that is an output of the network, is left as it is; forward, all
// its readers must be such products.
StatusOr<Graph> FoldScales(const Graph& graph);

}  // namespace kiln::graph
