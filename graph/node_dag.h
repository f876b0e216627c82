// Nodes of a network as one compute DAG: what a kernel computes.
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
  // By the DAG's arguments: its placeholders in their order, then its outputs.
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;  // kAbsent: an operator of several outputs makes it beside others
};

struct NodeDagOptions {
  // Constants of one float are numbers in the DAG, not inputs: what is computed can be told from
  // it, and depends on them.
  bool inline_numbers = false;
};

// Is it a constant of one float?
bool IsNumber(const Value& value);

// The nodes (ascending) as one DAG with `outputs`, values that they make. What none of them is made
// of is left out. Where an output is made of another one, one operator makes them all
// (DagBuilder::Join); refused if their shapes differ. Cost: tens of microseconds a node.
StatusOr<NodeDag> MakeNodeDag(const Graph& graph, std::span<const int> nodes,
                              std::span<const ValueId> outputs, const NodeDagOptions& options = {});

}  // namespace kiln::graph
