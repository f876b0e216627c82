// Kernels whose tiles the bulk copy engine of sm_90 brings (Hint::kBulkCopies): what both code
// generation (compiler/codegen/cuda/bulk_copies.h) and the search have to know of them.
#pragma once

#include <cstdint>

namespace kiln::ir {

// Threads of such a kernel beside those that compute.
inline constexpr int64_t kCopyingThreads = 32;
// Of shared memory, for the barriers of a ring: two of 8 bytes for each of up to 8 buffers.
inline constexpr int64_t kMostBulkBuffers = 8, kBulkBarrierBytes = 16 * kMostBulkBuffers;

}  // namespace kiln::ir
