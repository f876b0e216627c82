#pragma once

#include "base/status.h"
#include "graph/graph.h"

namespace kiln::graph {

// Merges products of one input by constant matrices into one product by all their columns, like
// TVM's CombineParallelDense. It uses a GPU or many cores better, and reads the input once. The
// queries, keys and values of attention are such products. Products are merged only if nothing but
// moves of elements reads the results: then the moves take the parts out of the whole, and no
// kernel is added.
StatusOr<Graph> MergeProducts(const Graph& graph);

}  // namespace kiln::graph
