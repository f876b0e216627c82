// A network as a target runs it: its passes are done, and it is cut into kernels.
#pragma once

#include <map>
#include <string>

#include "base/status.h"
#include "graph/graph.h"
#include "graph/passes/passes.h"
#include "graph/tasks.h"

namespace kiln::graph {

struct PreparedNetwork {
  Graph graph;  // after its passes
  NetworkKernels kernels;

  const KernelGroup& group(int kernel) const { return kernels.groups[static_cast<size_t>(kernel)]; }
  // The name of what a kernel makes: the same in a network that was prepared with other options.
  const std::string& MadeBy(int kernel) const { return graph.value(group(kernel).outputs[0]).name; }
};

struct PrepareOptions {
  PassOptions passes = {};
  bool pack_constants = false;  // TaskOptions
};

// Tuning and compiling both come this way, so that a network is compiled of the tasks that were
// tuned. Kernels take prologues and make second outputs, and on GPUs, which have a kernel for it,
// attention is one (PartitionOptions); but not where TVM's use of Winograd's method is asked for,
// which is to give TVM's tasks.
StatusOr<PreparedNetwork> PrepareNetwork(const Graph& network, const PrepareOptions& options);

// The tasks by the names of what their kernels make.
std::map<std::string, const NetworkTask*> TasksByMade(const PreparedNetwork& network);

}  // namespace kiln::graph
