// The runner's own kernels in the fake CUDA driver, for tests without a GPU.
#pragma once

#include "runtime/cuda_driver_testing.h"

namespace kiln::runner {

// Resets the fake driver, and gives it these kernels.
void ResetFakeCuda();

}  // namespace kiln::runner
