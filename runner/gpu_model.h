// The device model of a GPU, as the CUDA driver reports it.
#pragma once

#include "base/status.h"
#include "device/device_model.h"
#include "runtime/cuda_driver.h"
#include "runtime/cuda_gpus.h"

namespace kiln::runner {

// Reads attributes, and for a GPU with clusters also how many clusters of each size are resident at
// one block per multiprocessor. That needs a context of this process for a moment (0.3 s, and
// memory of the GPU). Numbers that the driver does not know, or that fail for lack of memory, are
// 0. An error if the numbers are no valid device model.
StatusOr<device::DeviceModel> ReadGpuModel(const runtime::CudaDriver& driver,
                                           const runtime::CudaGpu& gpu);

}  // namespace kiln::runner
