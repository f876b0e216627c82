// How large the bodies of operators are, and what becomes of that where they are put in place of
// the reads of others: what shows, before it is done, that inlining would grow without bounds.
//
// Sizes count the nodes of trees: expressions share equal parts, but lowering and generated code
// mostly do not. They are doubles, for they may be astronomical.
#pragma once

#include <vector>

#include "compiler/ir/expr.h"

namespace kiln::dag {

// The size of an expression of axes: `nodes` without the variables, and how many of those there
// are. With values of w nodes for the axes it has nodes + vars * w.
struct TreeSize {
  double nodes = 0, vars = 0;
  double With(double w) const { return nodes + vars * w; }
};

// All reads of one load slot with the same indices.
struct ReadSize {
  int slot;
  double count;    // in the tree
  TreeSize index;  // of the largest index
};

struct BodySize {
  TreeSize tree;   // of all bodies together
  int height = 0;  // of the highest
  std::vector<ReadSize> reads;
};

// Linear in the distinct nodes of the bodies.
BodySize SizeOf(const std::vector<ir::Expr>& bodies);

}  // namespace kiln::dag
