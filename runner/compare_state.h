// The result of a comparison on a GPU. This header includes no other, so that the kernels
// (cuda_kernels.cu) share it with the host.
#pragma once

namespace kiln::runner {

// The doubles are not negative, so their bits sort like the numbers.
struct CompareState {
  // Bits of a double: the largest finite |want|.
  unsigned long long largest = 0;
  // Bits of a double: the largest finite |got - want|.
  unsigned long long worst = 0;
  // Number of different elements.
  unsigned long long different = 0;
  // Index of the first different element; all ones if there is none.
  unsigned long long first = ~0ull;
};

}  // namespace kiln::runner
