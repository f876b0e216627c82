// Makes a network of float32 compute in a float type of 16 bits, as far as its results allow.
//
// Inputs and outputs of the network keep their types. Each node that makes float32 is either narrow
// or wide: a narrow one reads and makes the 16-bit type, a wide one stays float32. Conversions
// stand where a value goes from one kind to the other; in a kernel they cost next to nothing.
// Constants are rounded to the type of the node that reads them.
//
// Wide nodes are:
// - sums, averages and products over axes, powers, exponentials and logarithms, whose results leave
//   the range of float16, or lose all digits, where their inputs do not;
// - sine and cosine, and all that their arguments are made of: positions are as large as sequences
//   are long;
// - nodes that read a constant beyond the range of the type, such as the -3.4e38 of a mask. Their
//   results are limited to the range when they become narrow;
// - elementwise functions and moves whose float32 inputs are all made by wide nodes;
// - nodes that have no such type, and conversions to float32.
//
// Operators sum in float32 inside a node (graph/op.h), so products, convolutions, softmax and
// normalisation by layers or groups are narrow.
#pragma once

#include <map>
#include <string>

#include "base/status.h"
#include "compiler/ir/type.h"
#include "graph/graph.h"

namespace kiln::graph {

struct NarrowedNetwork {
  Graph graph;
  int narrow = 0;                        // number of narrow nodes
  std::map<std::string, int> wide = {};  // number of wide nodes, by operator
};

// Recognises normalisation over rows (row_norms.h), which is narrow, and folds normalisation with
// fixed statistics, and constants, in float32 first. `type` is float16 or
// bfloat16; others are refused. Cost: that of reading all constants.
StatusOr<NarrowedNetwork> NarrowFloats(const Graph& network, ir::Type type);

}  // namespace kiln::graph
