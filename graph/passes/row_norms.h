// Recognises normalisation over last axes that a file writes as single operators.
#pragma once

#include "base/status.h"
#include "graph/graph.h"

namespace kiln::graph {

// Rewrites these, where m is the average over the last axes, into one node each:
//   x / sqrt(m(x^2) + epsilon)                        rms_norm
//   (x - m(x)) / sqrt(m((x - m(x))^2) + epsilon)      layer_norm
// Quotients may be products with a reciprocal or with an inverse root, and squares may be products
// or powers. A product by a constant over the last axes that alone reads the result is the scale,
// and a sum behind it, of layer_norm, the bias. Nodes between that others read stay for them.
StatusOr<Graph> RowNorms(const Graph& graph);

}  // namespace kiln::graph
