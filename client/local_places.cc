#include "client/local_places.h"

#include <fmt/format.h>

#include <utility>

#include "client/core_list.h"
#include "client/worker_places.h"
#include "runtime/parallel_runtime.h"

namespace kiln::client {
namespace {

bool IsGpu(const LocalDevice& device) { return device.device.starts_with("cuda"); }

std::string OnCores(const std::vector<int>& cores) {
  if (cores.empty()) return "on any core";
  return fmt::format("on core{} {}", cores.size() == 1 ? "" : "s", CoreListText(cores));
}

}  // namespace

LocalPlaces PlaceDevices(std::vector<LocalDevice> devices, const HostTopology& host) {
  std::vector<std::string> addresses;
  for (const LocalDevice& device : devices) {
    if (IsGpu(device)) addresses.push_back(device.pci_address);
  }
  WorkerPlaces found = PlaceWorkers(host, addresses);
  LocalPlaces places{.runners = {}, .others = std::move(found.others)};
  size_t gpu = 0;
  for (LocalDevice& device : devices) {
    std::vector<int> cores;
    if (IsGpu(device)) cores = std::move(found.runners[gpu++]);
    places.runners.push_back({std::move(device), std::move(cores)});
  }
  return places;
}

std::string PlacesText(const LocalPlaces& places) {
  std::string text;
  for (const LocalPlaces::Runner& runner : places.runners) {
    text += fmt::format("{}{} ({}) {}", text.empty() ? "" : ", ", runner.device.label,
                        runner.device.name, OnCores(runner.cores));
  }
  return text + "; builds " + OnCores(places.others);
}

StatusOr<LocalPlaces> PlacesHere(const std::string& kind, const std::string& wanted) {
  KILN_ASSIGN_OR_RETURN(std::vector<LocalDevice> there, ListLocalDevices(kind));
  KILN_ASSIGN_OR_RETURN(std::vector<LocalDevice> devices,
                        ChooseLocalDevices(wanted, std::move(there)));
  return PlaceDevices(std::move(devices), HostTopology(runtime::AllowedCores()));
}

}  // namespace kiln::client
