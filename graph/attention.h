// Finds attention in a network: nodes that form one softmax chain (compiler/dag/softmax_chain.h). A
// target with a kernel for such chains computes them by one kernel.
//
//   moves of Q, K, V      slices, reshapes, transposes that only the products read, if rows of
//                         elements can still be read as they lie; products with one number
//   matmul(Q, K)          its result, and each value up to the second product, is read once
//   elementwise           a scale, a mask, a choice, conversions
//   softmax
//   matmul(weights, V)
//   moves after it        a transpose that leaves rows as they lie, elementwise functions
#pragma once

#include <vector>

#include "graph/graph.h"

namespace kiln::graph {

// Returns the nodes of each attention, ascending. Only the last node's value is read by other nodes
// or is an output. No node is in two attentions. Cost: milliseconds for each softmax; nothing
// without.
std::vector<std::vector<int>> FindAttention(const Graph& graph);

}  // namespace kiln::graph
