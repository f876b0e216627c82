// Tensors of other libraries (DLPack) against those of a network.
#pragma once

#include "base/status.h"
#include "runtime/kiln_runtime.h"
#include "runtime/network.h"

namespace kiln::runtime {

// DLDeviceType.
inline constexpr int32_t kDeviceCpu = 1, kDeviceCuda = 2, kDeviceCudaHost = 3,
                         kDeviceCudaManaged = 13;

// Where the elements of the tensor are. Refuses one that is not what the network wants: of another
// dtype or shape, not contiguous, or in memory that a network on `device` cannot use.
StatusOr<void*> ElementsOf(const KilnDLTensor* tensor, const NetworkTensor& wanted,
                           KilnDLDevice device);

}  // namespace kiln::runtime
