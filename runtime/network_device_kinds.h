// The kinds of devices that run networks. A row for each says which networks it runs, how DLPack
// calls it, and how it is opened. Executors, tensors and the C interface ask the row, and never
// which kind it is.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "runtime/network.h"
#include "runtime/network_device.h"

namespace kiln::runtime {

struct ExecutorOptions;

struct NetworkDeviceKind {
  // `kind` of the target of the networks that it runs: "cuda".
  std::string_view target;
  // Name of a device for people: "the CPU". "GPU" if a number follows.
  std::string_view noun;
  bool is_numbered = false;
  // True if a caller may queue runs in streams of its own.
  bool has_streams = false;
  // DLPack's type of devices of this kind (DLDeviceType).
  int32_t dl_type = 0;
  // DLPack's types of memory that the host reads and writes too.
  std::span<const int32_t> host_dl_types = {};
  // DLPack's types of such memory that devices of this kind reach, too.
  std::span<const int32_t> shared_dl_types = {};
  // Opens a device for `network`, which outlives it. FailedPrecondition if the network was compiled
  // for another device of this kind; the message says what the network needs and what is here.
  StatusOr<std::unique_ptr<NetworkDevice>> (*open)(const Network& network,
                                                   const ExecutorOptions& options);
};

// The device's file defines its row.
extern const NetworkDeviceKind kCpuDevice;
extern const NetworkDeviceKind kCudaDevice;

using NetworkDeviceKinds = std::span<const NetworkDeviceKind* const>;
NetworkDeviceKinds AllNetworkDeviceKinds();

// FailedPrecondition lists the kinds that there are.
StatusOr<const NetworkDeviceKind*> FindNetworkDeviceKind(std::string_view target,
                                                         NetworkDeviceKinds kinds);

// Returns "the CPU", "GPU 0", or for a kind that is not there "device 0 of DLPack type 7".
std::string DeviceText(DlDevice device, NetworkDeviceKinds kinds);

}  // namespace kiln::runtime
