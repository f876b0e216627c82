// The runner's own kernels in the fake CUDA driver, for tests without a GPU.
#pragma once

#include <string>

#include "runtime/cuda_driver_testing.h"

namespace kiln::runner {

// Resets the fake driver, and gives it these kernels.
void ResetFakeCuda();

// Returns a cubin that the fake driver takes. It has every kernel of the fake driver.
std::string EmptyCubin();

}  // namespace kiln::runner
