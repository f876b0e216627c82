// The runner's own GPU kernels (cuda_kernels.cu) as PTX, and the data that they share with the
// host.
#pragma once

#include <cstdint>

namespace kiln::runner {

struct CompareState {
  // Bits of a double: the largest finite |want|.
  uint64_t largest = 0;
  // Bits of a double: the largest finite |got - want|.
  uint64_t worst = 0;
  // Number of different elements.
  uint64_t different = 0;
  // Index of the first different element.
  uint64_t first = ~uint64_t{};
};

// Returns the text with a zero byte at its end, as the driver wants it.
const char* CudaKernelsPtx();

}  // namespace kiln::runner
