#include "client/worker_places.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace kiln::client {
namespace {

// Moves the last `count` of those cores of `free` that are in `wanted` to `taken`.
void Take(const std::vector<int>& wanted, size_t count, std::vector<int>& free,
          std::vector<int>& taken) {
  for (auto at = free.rbegin(); at != free.rend() && taken.size() < count;) {
    if (!std::ranges::binary_search(wanted, *at)) {
      ++at;
      continue;
    }
    taken.push_back(*at);
    at = std::make_reverse_iterator(free.erase(std::next(at).base()));
  }
}

// Returns the allowed cores, threads of one physical core side by side.
std::vector<int> ByPhysicalCore(const HostTopology& host) {
  std::vector<std::pair<int, int>> order;
  for (const int core : host.allowed()) order.emplace_back(host.PhysicalCore(core), core);
  std::ranges::sort(order);
  std::vector<int> cores;
  for (const auto& [physical, core] : order) cores.push_back(core);
  return cores;
}

}  // namespace

int CoresOfRunner(int cores, int gpus) {
  if (gpus <= 0) return 0;
  if (cores - 2 * gpus >= (3 * cores + 3) / 4) return 2;
  return cores - gpus >= (cores + 1) / 2 ? 1 : 0;
}

WorkerPlaces PlaceWorkers(const HostTopology& host, const std::vector<std::string>& pci_addresses) {
  WorkerPlaces places;
  places.runners.resize(pci_addresses.size());
  const int each = CoresOfRunner(static_cast<int>(host.allowed().size()),
                                 static_cast<int>(pci_addresses.size()));
  if (each == 0) return places;
  std::vector<int> free = ByPhysicalCore(host);
  // No runner takes the near cores of another one because its own are too few.
  for (size_t i = 0; i < pci_addresses.size(); ++i) {
    Take(host.Near(pci_addresses[i]), static_cast<size_t>(each), free, places.runners[i]);
  }
  for (std::vector<int>& cores : places.runners) {
    Take(host.allowed(), static_cast<size_t>(each), free, cores);
    std::ranges::sort(cores);
  }
  std::ranges::sort(free);
  places.others = std::move(free);
  return places;
}

}  // namespace kiln::client
