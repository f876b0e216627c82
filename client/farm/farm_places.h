// Which runners a farm on this machine has: one for the CPU, one for each GPU that the user wants.
//
// Pure but for the injected list and what the topology reads.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "client/farm/farm_state.h"
#include "client/host_topology.h"
#include "client/local_devices.h"
#include "client/local_places.h"

namespace kiln::client {

// Returns the devices of a kind ("cpu", "cuda", "null"); an error if there are none.
using ListDevices = std::function<StatusOr<std::vector<LocalDevice>>(const std::string& kind)>;

// Returns the places of the devices of `options`: of the kinds that it names, or of the CPU and the
// GPUs that are there; of the GPUs those that it chooses. A kind null that is named several times
// has as many runners. InvalidArgument: another kind is named twice, or a chosen GPU is not there.
StatusOr<LocalPlaces> FindFarmPlaces(const FarmOptions& options, const ListDevices& list,
                                     const HostTopology& host);

}  // namespace kiln::client
