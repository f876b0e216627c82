// Every operator of networks on small shapes, for tests of all operators.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/dag/dag.h"
#include "graph/graph.h"

namespace kiln::graph {

struct OpCase {
  // "conv(a, b) {pads: [1, 1]}".
  std::string call;
  // Types of a, b, ...: "float32[1, 3, 8]".
  std::vector<std::string> inputs;
  int num_outputs = 1;

  // Returns the call and the types.
  std::string Name() const;
  // Returns a graph of one node, and checks that it can be built.
  Graph Build() const;
  // Returns the node's computation.
  dag::DagPtr Write() const;
};

// Returns at least one case for each operator. Extents are odd, prime or 1 on purpose; each case
// has some hundred to some thousand operations.
const std::vector<OpCase>& SmallOpCases();

}  // namespace kiln::graph
