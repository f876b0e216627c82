// Writes nodes of a network as one compute DAG: the computation of a kernel.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "graph/graph.h"

namespace kiln::graph {

// A DAG whose arguments are values of a graph.
struct NodeDag {
  dag::DagPtr dag;
  // Values in the order of the DAG's arguments: its placeholders, then its outputs.
  std::vector<ValueId> inputs;
  // kAbsent for a further output of an operator, which is made beside the wanted ones.
  std::vector<ValueId> outputs;
};

struct NodeDagOptions {
  // True: constants of one float become numbers in the DAG instead of inputs. Then the DAG shows
  // the computation completely, and depends on these numbers.
  bool inline_numbers = false;
};

// Returns whether the value is a constant of one float.
bool IsNumber(const Value& value);

// Writes the nodes (ascending) as one DAG with `outputs`, which are values of these nodes. Nodes
// that no output needs are left out. If one output is computed from another one, one operator makes
// them all (DagBuilder::Join); different shapes are refused then. Cost: tens of microseconds a
// node.
StatusOr<NodeDag> MakeNodeDag(const Graph& graph, std::span<const int> nodes,
                              std::span<const ValueId> outputs, const NodeDagOptions& options = {});

}  // namespace kiln::graph
