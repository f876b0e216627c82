// Arrays whose elements lie in the order in which a program's loops read them.
//
// A packed array has one dimension for each loop. A dimension takes steps along one axis of the
// plain array. Element [v0, v1, ...] of the packed array is an element of the plain array: its
// index along an axis is the sum of v * step over the dimensions along that axis. Beyond the end of
// the plain array the packed array has zeros.
//
//   plain [5, 8], dims {axis 0, extent 3, step 2}, {axis 1, extent 8, step 1},
//                      {axis 0, extent 2, step 1}
//   packed [3, 8, 2], element [i, j, k] = plain[2*i + k, j], or 0 if 2*i + k is 5
//
// Plain values; pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace kiln {

struct PackedDim {
  // Axis of the plain array.
  int32_t axis = 0;
  // Extent of the packed array's dimension.
  int64_t extent = 1;
  // Step along the axis.
  int64_t step = 1;
  bool operator==(const PackedDim&) const = default;
};

struct Packing {
  // Extents of the plain array, in elements.
  std::vector<int64_t> shape = {};
  // Dimensions of the packed array, outermost first.
  std::vector<PackedDim> dims = {};
  bool operator==(const Packing&) const = default;
};

// Refuses an axis that is not there, extents and steps below 1, more than 2^60 elements, and
// packings that leave out an element of the plain array.
Status CheckPacking(const Packing& packing);

// The functions below take packings that CheckPacking accepts.
std::vector<int64_t> PackedShape(const Packing& packing);
int64_t PackedElements(const Packing& packing);

// Packs `plain` into `packed`. Both are row-major arrays of elements of `element_bytes`, of all
// their elements. Speed: about 1 GB/s, more if neighbours stay neighbours.
void Pack(const Packing& packing, int64_t element_bytes, std::span<const std::byte> plain,
          std::span<std::byte> packed);

// Returns "[5, 8] by [0: 2, 1: 1, 0: 1]": the plain shape, and axis and step of each dimension.
std::string PackingText(const Packing& packing);

}  // namespace kiln
