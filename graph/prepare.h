// Prepares a network for a target: runs the passes, and cuts it into kernels.
#pragma once

#include <map>
#include <string>

#include "base/status.h"
#include "graph/graph.h"
#include "graph/passes/passes.h"
#include "graph/tasks.h"

namespace kiln::graph {

struct PreparedNetwork {
  // The graph after its passes.
  Graph graph;
  NetworkKernels kernels;

  const KernelGroup& group(int kernel) const { return kernels.groups[static_cast<size_t>(kernel)]; }
  // Returns the name of a kernel's result. It is the same if the network is prepared with other
  // options.
  const std::string& MadeBy(int kernel) const { return graph.value(group(kernel).outputs[0]).name; }
};

struct PrepareOptions {
  PassOptions passes = {};
  // See TaskOptions.
  bool pack_constants = false;
};

// Tuning and compiling both call it, so that the tasks of a compiled network are those that were
// tuned. Kernels take prologues and make second outputs, and on GPUs, which have a kernel for it,
// attention is one kernel (PartitionOptions). The rule kTvm turns all of this off, since it is to
// give TVM's tasks.
StatusOr<PreparedNetwork> PrepareNetwork(const Graph& network, const PrepareOptions& options);

// Returns the tasks by the names of their kernels' results.
std::map<std::string, const NetworkTask*> TasksByMade(const PreparedNetwork& network);

}  // namespace kiln::graph
