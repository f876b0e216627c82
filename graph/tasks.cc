#include "graph/tasks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "compiler/dag/pack_constants.h"
#include "compiler/dag/workload_id.h"
#include "compiler/dag/workload_key.h"

namespace kiln::graph {
namespace {

bool HasReduction(const dag::Dag& dag) {
  for (const dag::OpNode& node : dag.nodes()) {
    if (node.op->is_reduction()) return true;
  }
  return false;
}

std::string Description(const Graph& graph, const KernelGroup& group) {
  std::vector<std::string> names;
  for (int node : group.nodes) {
    names.push_back(graph.node(node).op->name);
    if (IsStoredBetween(graph, group, node)) names.back() += " (stored)";
  }
  return fmt::format("{}", fmt::join(names, " "));
}

// A DAG lists its placeholders first, in the order of NodeDag::inputs.
dag::DagPtr WithConstantsPacked(const Graph& graph, const NodeDag& kernel) {
  return dag::PackConstants(kernel.dag, [&](int op) {
    const auto& arguments = kernel.dag->arguments();
    const auto at = std::ranges::find(arguments, op, &dag::Tensor::op) - arguments.begin();
    return graph.value(kernel.inputs[static_cast<size_t>(at)]).constant != nullptr;
  });
}

}  // namespace

NetworkTask MakeTask(dag::DagPtr dag, std::string description) {
  std::string id = dag::WorkloadId(*dag), key = dag::WorkloadKey(*dag);
  const bool is_simple = !HasReduction(*dag);
  return {.dag = std::move(dag),
          .workload_id = std::move(id),
          .workload_key = std::move(key),
          .description = std::move(description),
          .is_simple = is_simple,
          .kernels = {}};
}

StatusOr<NetworkKernels> ExtractTasks(const Graph& graph, const TaskOptions& options) {
  NetworkKernels result{
      .groups = PartitionIntoKernels(graph, options.partition), .dags = {}, .tasks = {}};
  std::map<std::string, size_t> by_id;
  for (size_t g = 0; g < result.groups.size(); ++g) {
    const KernelGroup& group = result.groups[g];
    result.dags.emplace_back();
    if (IsView(graph, group)) continue;
    KILN_ASSIGN_OR_RETURN(result.dags.back(), MakeNodeDag(graph, group.nodes, group.outputs,
                                                          {.inline_numbers = group.is_attention}));
    dag::DagPtr& dag = result.dags.back()->dag;
    if (options.pack_constants && !group.is_attention)
      dag = WithConstantsPacked(graph, *result.dags.back());
    const auto [found, is_new] = by_id.emplace(dag::WorkloadId(*dag), result.tasks.size());
    if (is_new) result.tasks.push_back(MakeTask(dag, Description(graph, group)));
    result.tasks[found->second].kernels.push_back(static_cast<int>(g));
  }
  return result;
}

}  // namespace kiln::graph
