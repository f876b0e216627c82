// The kinds of devices that a runner may serve: a row for each says how the device is named,
// described and used.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "proto/tracker.pb.h"
#include "runner/containment.h"
#include "runner/device.h"

namespace kiln::runner {

// What does not change while the daemon runs.
struct DeviceDescription {
  std::string device;     // as a child's --device: the same one, whatever the order
  v1::WorkerState state;  // without an address and what every worker has
};

struct DeviceSettings {
  int threads = 0;  // cores to run programs on
  ContainmentOptions containment = {};
};

struct DeviceKind {
  // What --device is, or begins with before a colon. The kinds of artifacts that it loads and a
  // target kind's `device` are called so, too.
  std::string_view name;
  // For --help: "cuda: every NVIDIA GPU, cuda:0 or cuda:GPU-...: one of them".
  std::string_view help;
  // May a colon and which one follow the name?
  bool is_numbered = false;

  // The devices that `device` means, described by asking for facts: programs and what stays loaded
  // for them are the children's. NotFound and FailedPrecondition say what there is.
  StatusOr<std::vector<DeviceDescription>> (*describe)(std::string_view device,
                                                       const DeviceSettings& settings);
  // Called in a child, for a device that a description names. Null: nothing is run, and there are
  // no children.
  StatusOr<std::unique_ptr<Device>> (*open)(std::string_view device,
                                            const DeviceSettings& settings) = nullptr;
  // What people should know of the device here before it serves; "": nothing. Null: never anything.
  std::string (*caveat)(const DeviceSettings& settings) = nullptr;
};

using DeviceKinds = std::span<const DeviceKind>;
DeviceKinds AllDeviceKinds();

// InvalidArgument with the list of those that there are.
StatusOr<const DeviceKind*> FindDeviceKind(std::string_view device,
                                           DeviceKinds kinds = AllDeviceKinds());

}  // namespace kiln::runner
