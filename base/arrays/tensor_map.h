// Boxes of an array in a GPU's memory that the GPU's bulk copy engine (TMA, sm_90 and up) moves.
// The driver makes a CUtensorMap from such a map.
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
  // Index of the array among the arguments of the program.
  uint32_t arg = 0;
  uint32_t element_bytes = 4;
  // Extents of the array, the innermost dimension first, along which elements are neighbours. The
  // next two lists have the same order.
  std::vector<int64_t> extents = {};
  // Strides in bytes, of all dimensions but the innermost.
  std::vector<int64_t> strides = {};
  // Extents, in elements, of the box that one copy moves.
  std::vector<int64_t> box = {};
  // Swizzle of the elements in shared memory: 0, 32, 64 or 128.
  uint32_t swizzle_bytes = 0;
  bool operator==(const TensorMap&) const = default;
};

// Checks the driver's rules (CUDA Driver API, cuTensorMapEncodeTiled): 1 to 5 dimensions, extents
// up to 2^32, strides that are multiples of 16 bytes below 2^40, boxes of 1 to 256 elements along a
// dimension. Along the innermost dimension a box has a multiple of 16 bytes, and no more bytes than
// the swizzle.
Status CheckTensorMap(const TensorMap& map);

// Returns the bytes of a box.
int64_t BoxBytes(const TensorMap& map);

// Returns the bytes of the array from its beginning to its last element.
int64_t ReachedBytes(const TensorMap& map);

// Returns all numbers, "argument 0, elements of 2 bytes, extents [1024, 512], ...", for digests and
// messages.
std::string TensorMapText(const TensorMap& map);

}  // namespace kiln
