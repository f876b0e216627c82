#include "client/farm/farm_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace kiln::client {
namespace {

// Returns the devices of a kind that is named `times` times.
StatusOr<std::vector<LocalDevice>> DevicesOfKind(const std::string& kind, int64_t times,
                                                 const FarmOptions& options,
                                                 const ListDevices& list) {
  KILN_ASSIGN_OR_RETURN(std::vector<LocalDevice> devices, list(kind));
  if (kind == "cuda") return ChooseLocalDevices(options.gpus, std::move(devices));
  if (times == 1) return devices;
  if (kind != "null") {
    return InvalidArgument("--device {} is given {} times, expected once: it has a runner already",
                           kind, times);
  }
  std::vector<LocalDevice> copies(static_cast<size_t>(times), devices.front());
  for (size_t i = 0; i < copies.size(); ++i) copies[i].label = fmt::format("{}:{}", kind, i);
  return copies;
}

// Returns the devices that are there if the user names no kind.
StatusOr<std::vector<LocalDevice>> UsualDevices(const FarmOptions& options,
                                                const ListDevices& list) {
  KILN_ASSIGN_OR_RETURN(std::vector<LocalDevice> devices, list("cpu"));
  auto gpus = list("cuda");
  // A machine without a GPU is as good as another, unless the user chooses among its GPUs.
  if (!gpus.ok() && options.gpus == "all") return devices;
  KILN_RETURN_IF_ERROR(gpus.status());
  KILN_ASSIGN_OR_RETURN(std::vector<LocalDevice> chosen,
                        ChooseLocalDevices(options.gpus, *std::move(gpus)));
  std::ranges::move(chosen, std::back_inserter(devices));
  return devices;
}

}  // namespace

StatusOr<LocalPlaces> FindFarmPlaces(const FarmOptions& options, const ListDevices& list,
                                     const HostTopology& host) {
  std::vector<LocalDevice> devices;
  if (options.devices.empty()) {
    KILN_ASSIGN_OR_RETURN(devices, UsualDevices(options, list));
  }
  std::vector<std::string> seen;
  for (const std::string& kind : options.devices) {
    if (std::ranges::find(seen, kind) != seen.end()) continue;
    seen.push_back(kind);
    KILN_ASSIGN_OR_RETURN(
        std::vector<LocalDevice> more,
        DevicesOfKind(kind, std::ranges::count(options.devices, kind), options, list));
    std::ranges::move(more, std::back_inserter(devices));
  }
  if (devices.empty()) return NotFound("this machine has no device to measure on");
  return PlaceDevices(std::move(devices), host);
}

}  // namespace kiln::client
