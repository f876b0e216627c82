// Lists the devices of this machine, as a runner on it would announce them, and chooses among them.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "proto/tracker.pb.h"

namespace kiln::client {

// A device of this machine, with what the place of its runner depends on.
struct LocalDevice {
  // The runner's --device, which means the same device whatever the order of devices is: "cpu",
  // "cuda:GPU-1f0c...", "null".
  std::string device;
  // The device's name for people: "cuda:1", or "cuda" if it is the only one.
  std::string label;
  // "NVIDIA H200"
  std::string name;
  // "0000:3b:00.0"; "": the device has none, or it is not known.
  std::string pci_address = {};
  // The state that its runner would announce.
  v1::WorkerState runner = {};
};

// Returns the devices that `kiln runner --device DEVICE --list` prints (DEVICE: "cpu", "cuda",
// "null"), in the order of their indices, which CUDA_VISIBLE_DEVICES determines. Starts a child
// process of this program. FailedPrecondition if there is no such device.
StatusOr<std::vector<LocalDevice>> ListLocalDevices(const std::string& device);
// Parses what that command prints.
StatusOr<std::vector<LocalDevice>> ParseLocalDevices(const std::string& listing);

// Returns the same devices as runners with their keys.
StatusOr<v1::ListReply> LocalDevices(const std::string& device);

// Returns the key of the device that the user names by name, UUID or index.
StatusOr<std::string> ChooseLocalDevice(const std::string& wanted, const std::string& kind,
                                        const v1::ListReply& there);

// Returns those devices of `there` that the user names: "all", or indices and UUIDs (or beginnings
// of them) with commas between, as in "0,GPU-1f0c". The order is that of `there`. InvalidArgument,
// with what is there, if one is not there or is named twice.
StatusOr<std::vector<LocalDevice>> ChooseLocalDevices(const std::string& wanted,
                                                      std::vector<LocalDevice> there);

}  // namespace kiln::client
