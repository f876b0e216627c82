#pragma once

#include "base/status.h"
#include "graph/graph.h"

namespace kiln::graph {

// Products of one input by constant matrices are one product by all their columns, as TVM's
// CombineParallelDense makes it: a GPU or many cores are better used, and the input is read once. So
// are the queries, keys and values of attention. Only where nothing but moves of elements reads the
// results, so that the moves take the parts out of the whole and no kernel is added.
StatusOr<Graph> MergeProducts(const Graph& graph);

}  // namespace kiln::graph
