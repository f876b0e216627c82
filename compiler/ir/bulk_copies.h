// Limits of kernels whose tiles are brought by the bulk copy engine of sm_90 (Hint::kBulkCopies).
// Code generation (compiler/codegen/cuda/bulk_copies.h) and the search share them.
#pragma once

#include <cstdint>

namespace kiln::ir {

// Number of threads of such a kernel that copy. They come on top of the threads that compute.
inline constexpr int64_t kCopyingThreads = 32;
// Bytes of shared memory for the barriers of a ring: two barriers of 8 bytes for each of up to 8
// buffers.
inline constexpr int64_t kMaxBulkBuffers = 8, kBulkBarrierBytes = 16 * kMaxBulkBuffers;

}  // namespace kiln::ir
