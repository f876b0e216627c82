// The oracle of networks: evaluates the nodes one after the other, each by the oracle of its DAG
// (dag/evaluate.h). It is slow and simple. Tests compare passes and compiled networks with it.
//
// Sums are carried in float64 and rounded once. Pure; any thread. Cost: tens of nanoseconds for
// each operation, which means minutes for a large network; a caller may pass a faster evaluator of
// DAGs.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/ir/ndarray.h"
#include "graph/graph.h"

namespace kiln::graph {

// Computes a DAG: takes one array per placeholder in the order of Dag::arguments(), and returns one
// per output.
using DagEvaluator = std::function<StatusOr<std::vector<ir::NDArray>>(
    const dag::DagPtr& dag, std::span<const ir::NDArray> inputs)>;
// The oracle of DAGs.
StatusOr<std::vector<ir::NDArray>> EvaluateDag(const dag::DagPtr& dag,
                                               std::span<const ir::NDArray> inputs);

// `inputs` match Graph::inputs(), results match Graph::outputs(). Refuses another number, types or
// shapes. A value is kept until no further node reads it.
StatusOr<std::vector<ir::NDArray>> Evaluate(const Graph& graph, std::span<const ir::NDArray> inputs,
                                            const DagEvaluator& evaluate = EvaluateDag);

// Evaluates one node. `inputs` match the node's inputs; null for an absent one.
StatusOr<std::vector<ir::NDArray>> EvaluateNode(const Graph& graph, int node,
                                                std::span<const ir::NDArray* const> inputs,
                                                const DagEvaluator& evaluate = EvaluateDag);

}  // namespace kiln::graph
