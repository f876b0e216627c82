// Boxes of an array in a GPU's memory that its bulk copy engine (TMA, sm_90 and up) moves: what the
// driver makes a CUtensorMap of.
//
//   array    float16 [512, 1024], row-major
//   map      extents {1024, 512}, strides {2048}, box {64, 128}, swizzle 128
//   a copy   128 rows of 64 neighbours from anywhere in the array; beyond its ends there are zeros
//
// Plain values; pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace kiln {

struct TensorMap {
  uint32_t arg = 0;  // the array: an index into the arguments of the program
  uint32_t element_bytes = 4;
  // Dimensions, the innermost first; its elements are neighbours.
  std::vector<int64_t> extents = {};  // of the array
  std::vector<int64_t> strides = {};  // in bytes, of all dimensions but the innermost
  std::vector<int64_t> box = {};      // elements that one copy moves
  uint32_t swizzle_bytes = 0;         // how they lie in shared memory: 0, 32, 64 or 128
  bool operator==(const TensorMap&) const = default;
};

// What the driver asks for (CUDA Driver API, cuTensorMapEncodeTiled): 1 to 5 dimensions, extents up
// to 2^32, strides that are multiples of 16 bytes below 2^40, boxes of 1 to 256 elements along a
// dimension, of a multiple of 16 bytes along the innermost one and of no more than is swizzled.
Status CheckTensorMap(const TensorMap& map);

// Bytes of a box.
int64_t BoxBytes(const TensorMap& map);

// Bytes of the array from its beginning to its last element.
int64_t ReachedBytes(const TensorMap& map);

// "argument 0, elements of 2 bytes, extents [1024, 512], ...": all of it, for digests and messages.
std::string TensorMapText(const TensorMap& map);

}  // namespace kiln
