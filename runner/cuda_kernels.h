// The runner's own GPU kernels (cuda_kernels.cu) as PTX.
#pragma once

namespace kiln::runner {

// Returns the text with a zero byte at its end, as the driver wants it.
const char* CudaKernelsPtx();

}  // namespace kiln::runner
