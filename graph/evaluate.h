// The oracle of networks: each node by the oracle of its DAG (dag/evaluate.h), one after the other.
// Slow and obvious; what passes make of a graph, and what compiled networks compute, is tested
// against it.
//
// Sums are carried in float64 and rounded once. Pure; any thread. Cost: tens of nanoseconds for
// each operation.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "compiler/ir/ndarray.h"
#include "graph/graph.h"

namespace kiln::graph {

// `inputs` as Graph::inputs(), results as Graph::outputs(). Refuses another number, types or
// shapes. A value is kept no longer than a node reads it.
StatusOr<std::vector<ir::NDArray>> Evaluate(const Graph& graph,
                                            std::span<const ir::NDArray> inputs);

// One node. `inputs` as the node's, null where one is absent.
StatusOr<std::vector<ir::NDArray>> EvaluateNode(const Graph& graph, int node,
                                                std::span<const ir::NDArray* const> inputs);

}  // namespace kiln::graph
