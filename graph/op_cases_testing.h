// Every operator of networks on small shapes: what tests that run over all of them use.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/dag/dag.h"
#include "graph/graph.h"

namespace kiln::graph {

struct OpCase {
  std::string call;                 // "conv(a, b) {pads: [1, 1]}"
  std::vector<std::string> inputs;  // types of a, b, ...: "float32[1, 3, 8]"
  int num_outputs = 1;

  std::string Name() const;   // the call and the types
  Graph Build() const;        // one node; checks that it can be built
  dag::DagPtr Write() const;  // what it computes
};

// At least one case for each operator. Odd extents, primes and 1 on purpose; some hundred to some
// thousand operations each.
const std::vector<OpCase>& SmallOpCases();

}  // namespace kiln::graph
