// The sizes of operators' bodies, and the sizes that bodies would have with producers inlined. They
// show beforehand that inlining would grow without bounds.
//
// Sizes count the nodes of trees: expressions share equal parts, but lowering and generated code
// mostly do not. They are doubles, because they may be astronomical.
#pragma once

#include <vector>

#include "compiler/ir/expr.h"

namespace kiln::dag {

// The size of an expression of axes: its nodes without the variables, and the number of variables.
// If each axis is replaced by an expression of w nodes, the size becomes nodes + vars * w.
struct TreeSize {
  double nodes = 0, vars = 0;
  double With(double w) const { return nodes + vars * w; }
};

// All reads of one load slot with the same indices.
struct ReadSize {
  int slot;
  // Number of occurrences in the tree.
  double count;
  // Size of the largest index.
  TreeSize index;
};

struct BodySize {
  // Size of all bodies together.
  TreeSize tree;
  // Height of the highest body.
  int height = 0;
  std::vector<ReadSize> reads;
};

// Linear in the distinct nodes of the bodies.
BodySize SizeOf(const std::vector<ir::Expr>& bodies);

}  // namespace kiln::dag
