// What the CUDA driver knows of a GPU, as its device model.
#pragma once

#include "base/status.h"
#include "device/device_model.h"
#include "runtime/cuda_driver.h"
#include "runtime/cuda_gpus.h"

namespace kiln::runner {

// Asks for attributes, and for a GPU with clusters how many of each size are resident at one block
// per multiprocessor: that takes a context of this process for a moment (0.3 s, and memory of the
// GPU). What the driver does not know, or what fails for want of memory, is 0. Refused where what
// it says is no device model.
StatusOr<device::DeviceModel> ReadGpuModel(const runtime::CudaDriver& driver,
                                           const runtime::CudaGpu& gpu);

}  // namespace kiln::runner
