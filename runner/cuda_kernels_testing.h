// The runner's own kernels in the CUDA driver without a GPU.
#pragma once

#include "runtime/cuda_driver_testing.h"

namespace kiln::runner {

// The driver as new, with these kernels.
void ResetFakeCuda();

}  // namespace kiln::runner
