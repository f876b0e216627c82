// The runners of a farm on this machine: a runner for each device, and the cores of each process.
//
// Values, and pure but for what the topology reads. Any thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "client/host_topology.h"
#include "client/local_devices.h"

namespace kiln::client {

struct LocalPlaces {
  struct Runner {
    LocalDevice device;
    // Ascending; empty: any core.
    std::vector<int> cores = {};
  };
  std::vector<Runner> runners;
  // Cores of builder, scheduler and tracker, ascending; empty: any core.
  std::vector<int> others = {};
};

// Gives each GPU of `devices` a runner with cores of its own (worker_places.h). The CPU is measured
// on all cores, and so is what is made up.
LocalPlaces PlaceDevices(std::vector<LocalDevice> devices, const HostTopology& host);

// Returns for instance "cuda:0 (NVIDIA H200) on cores 14-15, cuda:1 (NVIDIA H200) on cores 12-13;
// builds on cores 0-11".
std::string PlacesText(const LocalPlaces& places);

// Returns the places of the devices of a kind ("cpu", "cuda", "null") that the user wants
// (ChooseLocalDevices), on this machine. Starts a child process of this program.
StatusOr<LocalPlaces> PlacesHere(const std::string& kind, const std::string& wanted);

}  // namespace kiln::client
