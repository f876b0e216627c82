// Matches tensors of other libraries (DLPack) with those of a network.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"
#include "runtime/kiln_runtime.h"
#include "runtime/network.h"
#include "runtime/network_device.h"
#include "runtime/network_device_kinds.h"

namespace kiln::runtime {

// A tensor that a network takes or makes.
struct WantedTensor {
  // The network outlives it.
  const NetworkTensor* tensor = nullptr;
  KilnDLDataType type = {};
  // No elements.
  bool is_empty = false;
};
// The network was checked (CheckNetwork).
std::vector<WantedTensor> WantedTensors(std::span<const NetworkTensor> tensors);

// The device that a network runs on. The kinds say which memory is the host's, and name devices.
struct TensorPlace {
  DlDevice device = {};
  NetworkDeviceKinds kinds = {};
};

// Returns OK if the network can use the tensor, and refuses a tensor of another dtype or shape, one
// that is not contiguous, or one in memory that is neither that of the network's device nor the
// host's. Allocates nothing if the tensor is right.
Status CheckTensor(const KilnDLTensor* tensor, const WantedTensor& wanted,
                   const TensorPlace& place);

// Refuses a tensor in memory that the network's device does not reach, for runs that copy nothing
// from or to the host.
Status CheckOnDevice(const KilnDLTensor& tensor, const WantedTensor& wanted,
                     const TensorPlace& place);

// Returns the address of the tensor's elements.
inline void* ElementsOf(const KilnDLTensor& tensor) {
  return static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
}

}  // namespace kiln::runtime
