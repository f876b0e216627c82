// The oracle of networks: each node by the oracle of its DAG (dag/evaluate.h), one after the other.
// Slow and obvious; what passes make of a graph, and what compiled networks compute, is tested
// against it.
//
// Sums are carried in float64 and rounded once. Pure; any thread. Cost: tens of nanoseconds for
// each operation, which makes minutes of a large network: who has something faster for one DAG can
// bring it.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/ir/ndarray.h"
#include "graph/graph.h"

namespace kiln::graph {

// Computes a DAG: one array per placeholder, as Dag::arguments() lists them, to one per output.
using DagEvaluator = std::function<StatusOr<std::vector<ir::NDArray>>(
    const dag::DagPtr& dag, std::span<const ir::NDArray> inputs)>;
// The oracle of DAGs.
StatusOr<std::vector<ir::NDArray>> EvaluateDag(const dag::DagPtr& dag,
                                               std::span<const ir::NDArray> inputs);

// `inputs` as Graph::inputs(), results as Graph::outputs(). Refuses another number, types or
// shapes. A value is kept no longer than a node reads it.
StatusOr<std::vector<ir::NDArray>> Evaluate(const Graph& graph, std::span<const ir::NDArray> inputs,
                                            const DagEvaluator& evaluate = EvaluateDag);

// One node. `inputs` as the node's, null where one is absent.
StatusOr<std::vector<ir::NDArray>> EvaluateNode(const Graph& graph, int node,
                                                std::span<const ir::NDArray* const> inputs,
                                                const DagEvaluator& evaluate = EvaluateDag);

}  // namespace kiln::graph
