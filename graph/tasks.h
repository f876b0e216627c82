// The tasks of a network: what is to be tuned so that it runs fast.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "graph/graph.h"
#include "graph/partition.h"

namespace kiln::graph {

// One computation that kernels of the network do.
struct NetworkTask {
  dag::DagPtr dag;
  std::string workload_id;   // dag/workload_id.h
  std::string workload_key;  // dag/workload_key.h
  // Its nodes' operators: "conv add relu". "conv add (stored) relu": the sum is an output, too.
  std::string description;
  bool is_simple = false;    // has no sums: nothing but elementwise functions and moves
  std::vector<int> kernels;  // of the network that it stands for; their number is its weight
};

// Of one computation, whatever it is part of: no kernels yet.
NetworkTask MakeTask(dag::DagPtr dag, std::string description);

struct TaskOptions {
  PartitionOptions partition = {};
  // Kernels take constants packed where they can (dag::PackConstants), attention apart: the tasks
  // of those are computations of their own, also beside equal ones whose weights another kernel
  // makes.
  bool pack_constants = false;
};

// A network as kernels, and the computation of each.
struct NetworkKernels {
  std::vector<KernelGroup> groups;
  // By group: what it computes. None for views.
  std::vector<std::optional<NodeDag>> dags;
  // In the order of their first kernels; each computation once. Views have none.
  std::vector<NetworkTask> tasks;
};

StatusOr<NetworkKernels> ExtractTasks(const Graph& graph, const TaskOptions& options = {});

}  // namespace kiln::graph
