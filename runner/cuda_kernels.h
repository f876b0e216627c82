// The runner's own GPU kernels (cuda_kernels.cu) as PTX, and what they share with the host.
#pragma once

#include <cstdint>

namespace kiln::runner {

struct CompareState {
  uint64_t largest = 0;          // bits of a double: the largest finite |want|
  uint64_t worst = 0;            // likewise: the largest finite |got - want|
  uint64_t different = 0;        // elements
  uint64_t first = ~uint64_t{};  // index of the first of them
};

// Ends with a zero byte, as the driver wants it.
const char* CudaKernelsPtx();

}  // namespace kiln::runner
