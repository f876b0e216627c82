// The kinds of devices that a runner may serve. A row for each kind says how the device is named,
// described and used.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/process/namespaces.h"
#include "base/status.h"
#include "device/device_state.h"
#include "proto/tracker.pb.h"
#include "runner/containment.h"
#include "runner/device.h"

namespace kiln::runner {

// Facts about a device that do not change while the daemon runs.
struct DeviceDescription {
  // A child's --device, which means the same device whatever the order of devices is.
  std::string device;
  // State without an address and without the fields that every worker has.
  v1::WorkerState state;
  // "0000:3b:00.0"; "": the device has none, or it is not known.
  std::string pci_address = {};
};

struct DeviceSettings {
  // Number of cores to run programs on.
  int threads = 0;
  ContainmentOptions containment = {};
};

struct DeviceKind {
  // Name that --device is, or begins with before a colon. The kind of artifacts that the device
  // loads, and `device` of a target kind, have the same name.
  std::string_view name;
  // Text for --help: "cuda: every NVIDIA GPU, cuda:0 or cuda:GPU-...: one of them".
  std::string_view help;
  // True if the name may have a colon and the choice of a device behind it.
  bool is_numbered = false;

  // Describes the devices that `device` means by asking for facts only. Children run programs and
  // load what programs need. NotFound and FailedPrecondition list the devices that there are.
  StatusOr<std::vector<DeviceDescription>> (*describe)(std::string_view device,
                                                       const DeviceSettings& settings);
  // Opens a device that a description names; called in a child. Null: the kind runs nothing and has
  // no children.
  StatusOr<std::unique_ptr<Device>> (*open)(std::string_view device,
                                            const DeviceSettings& settings) = nullptr;
  // Opens a reader of the state of a device that a description names; called in the daemon. Null,
  // or a null reader: the state is not known.
  std::unique_ptr<device::DeviceStateReader> (*state)(std::string_view device,
                                                      const DeviceSettings& settings) = nullptr;
  // Returns the files that a child needs. Null: the kind has no children.
  FileView (*files)() = nullptr;
};

using DeviceKinds = std::span<const DeviceKind>;
DeviceKinds AllDeviceKinds();

// InvalidArgument lists the kinds that there are.
StatusOr<const DeviceKind*> FindDeviceKind(std::string_view device,
                                           DeviceKinds kinds = AllDeviceKinds());

}  // namespace kiln::runner
