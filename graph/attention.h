// Attention in a network: nodes that are one softmax chain (compiler/dag/softmax_chain.h), which
// targets with a kernel for it compute by one.
//
//   moves of Q, K, V      slices, reshapes, transposes that alone the products read, as long as rows
//                         of elements are still read as they lie; products with one number
//   matmul(Q, K)          its result and all up to the second product is read once
//   elementwise           a scale, a mask, a choice, conversions
//   softmax
//   matmul(weights, V)
//   moves behind          a transpose that leaves rows as they lie, elementwise functions
#pragma once

#include <vector>

#include "graph/graph.h"

namespace kiln::graph {

// The nodes of each, ascending: of the last one alone is what others read, or an output. No node is
// in two. Cost: milliseconds for each softmax; nothing without.
std::vector<std::vector<int>> FindAttention(const Graph& graph);

}  // namespace kiln::graph
