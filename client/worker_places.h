// Divides the cores of this machine among the runners of its GPUs and the processes beside them.
//
// A runner's host threads launch kernels and read clocks. They wait for a core where builders and
// searches have all of them, and the GPU waits with them; so each runner has cores of its own, near
// its GPU.
//
// Pure but for what the topology reads. Any thread.
#pragma once

#include <string>
#include <vector>

#include "client/host_topology.h"

namespace kiln::client {

struct WorkerPlaces {
  // For each GPU, the cores of its runner, ascending; empty: any core.
  std::vector<std::vector<int>> runners;
  // Cores of builders, scheduler and tracker, ascending; empty: any core.
  std::vector<int> others;
};

// Returns how many cores each of `gpus` runners has for itself, if there are `cores`: two where
// three quarters of all are left, else one where half are left, else none.
int CoresOfRunner(int cores, int gpus);

// `pci_addresses` are those of the GPUs. A runner's cores are near its GPU as far as there are
// enough, the last ones first, and threads of one physical core rather than of two.
WorkerPlaces PlaceWorkers(const HostTopology& host, const std::vector<std::string>& pci_addresses);

}  // namespace kiln::client
