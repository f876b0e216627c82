// Extracts the tasks of a network: the computations to tune so that it runs fast.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "graph/graph.h"
#include "graph/partition.h"

namespace kiln::graph {

// One computation, which kernels of the network perform.
struct NetworkTask {
  dag::DagPtr dag;
  // See dag/workload_id.h.
  std::string workload_id;
  // See dag/workload_key.h.
  std::string workload_key;
  // Operators of its nodes: "conv add relu"; "conv add (stored) relu" if the sum is an output too.
  std::string description;
  // True: it has no sums, only elementwise functions and moves.
  bool is_simple = false;
  // Kernels of the network with this computation. Their number is its weight.
  std::vector<int> kernels;
};

// Makes the task of a computation, whatever it is a part of. It has no kernels yet.
NetworkTask MakeTask(dag::DagPtr dag, std::string description);

struct TaskOptions {
  PartitionOptions partition = {};
  // True: kernels except attention take constants packed if they can (dag::PackConstants). The
  // tasks of these kernels are computations of their own, even beside equal kernels whose weights
  // another kernel makes.
  bool pack_constants = false;
};

// A network as kernels, and the computation of each kernel.
struct NetworkKernels {
  std::vector<KernelGroup> groups;
  // Computations by group. Views have none.
  std::vector<std::optional<NodeDag>> dags;
  // Tasks in the order of their first kernels; each computation occurs once. Views have none.
  std::vector<NetworkTask> tasks;
};

StatusOr<NetworkKernels> ExtractTasks(const Graph& graph, const TaskOptions& options = {});

}  // namespace kiln::graph
