#include "graph/prepare.h"

namespace kiln::graph {

StatusOr<PreparedNetwork> PrepareNetwork(const Graph& network, const PrepareOptions& options) {
  PreparedNetwork prepared;
  KILN_ASSIGN_OR_RETURN(prepared.graph, RunPasses(network, options.passes));
  const bool own_way = options.passes.winograd != WinogradRule::kTvm;
  const PartitionOptions partition{.prologues = own_way,
                                   .second_outputs = own_way,
                                   .attention = own_way && options.passes.is_gpu};
  KILN_ASSIGN_OR_RETURN(prepared.kernels,
                        ExtractTasks(prepared.graph, {.partition = partition,
                                                      .pack_constants = options.pack_constants}));
  return prepared;
}

std::map<std::string, const NetworkTask*> TasksByMade(const PreparedNetwork& network) {
  std::map<std::string, const NetworkTask*> tasks;
  for (const NetworkTask& task : network.kernels.tasks) {
    for (int kernel : task.kernels) tasks[network.MadeBy(kernel)] = &task;
  }
  return tasks;
}

}  // namespace kiln::graph
