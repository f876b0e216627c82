// Matches tensors of other libraries (DLPack) with those of a network.
#pragma once

#include "base/status.h"
#include "runtime/kiln_runtime.h"
#include "runtime/network.h"

namespace kiln::runtime {

// DLDeviceType
inline constexpr int32_t kDeviceCpu = 1, kDeviceCuda = 2, kDeviceCudaHost = 3,
                         kDeviceCudaManaged = 13;

// Returns the address of the tensor's elements. Refuses a tensor that the network does not want: of
// another dtype or shape, not contiguous, or in memory that a network on `device` cannot use.
StatusOr<void*> ElementsOf(const KilnDLTensor* tensor, const NetworkTensor& wanted,
                           KilnDLDevice device);

}  // namespace kiln::runtime
