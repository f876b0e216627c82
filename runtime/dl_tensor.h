// Matches tensors of other libraries (DLPack) with those of a network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "runtime/kiln_runtime.h"
#include "runtime/network.h"

namespace kiln::runtime {

// DLDeviceType
inline constexpr int32_t kDeviceCpu = 1, kDeviceCuda = 2, kDeviceCudaHost = 3,
                         kDeviceCudaManaged = 13;

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

// Returns OK if the network can use the tensor, and refuses a tensor of another dtype or shape, one
// that is not contiguous, or one in memory that a network on `device` cannot use. Allocates nothing
// if the tensor is right.
Status CheckTensor(const KilnDLTensor* tensor, const WantedTensor& wanted, KilnDLDevice device);

// Refuses a tensor that is not in the memory of the GPU `device`, for runs that copy nothing from
// or to the host.
Status CheckOnGpu(const KilnDLTensor& tensor, const WantedTensor& wanted, KilnDLDevice device);

// Returns the address of the tensor's elements.
inline void* ElementsOf(const KilnDLTensor& tensor) {
  return static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
}

}  // namespace kiln::runtime
