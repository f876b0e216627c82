// The bulk copy engine of sm_90 (TMA): copies of tiles that one thread asks for, and the barriers
// in shared memory that say which tiles are there.
//
// PTX ISA, "cp.async.bulk.tensor" and "mbarrier". The search and code generation
// (compiler/codegen/cuda/bulk_copies.h) share the limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kiln::instructions {

// A copy is a box of an array of up to 5 dimensions: up to 256 elements along each, a multiple of
// 16 bytes along the last one. In shared memory it begins at a multiple of 128 bytes.
inline constexpr size_t kMostBoxDimensions = 5;
inline constexpr int64_t kMostOfBox = 256, kBoxPieceBytes = 16, kBoxAlignment = 128;

// Number of threads of a kernel with Hint::kBulkCopies that copy. They come on top of the threads
// that compute.
inline constexpr int64_t kCopyingThreads = 32;
// A lone group of four warps copies keys and values of an online softmax for itself if a tile has
// at least so many keys. Shorter tiles have another warp that copies, and lose less time so.
inline constexpr int64_t kKeysOfOwnCopies = 128;
// Keys of a tile for each pair of weights that a thread holds.
inline constexpr int64_t kKeysOfPair = 4;
// Bytes of shared memory for the barriers of a ring: two barriers of 8 bytes for each of up to 8
// buffers.
inline constexpr int64_t kMaxBulkBuffers = 8, kBulkBarrierBytes = 16 * kMaxBulkBuffers;

// Returns the device functions by which kernels copy in bulk.
std::string_view BulkCopyDefinitions();

// Returns those by which groups of four warps begin products in turn, and share out registers.
std::string_view TurnDefinitions();

}  // namespace kiln::instructions
