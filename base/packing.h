// Arrays whose elements lie in the order in which the loops of a program come by them.
//
// A packed array has one dimension for each loop. A dimension takes steps along one axis of the
// plain array: the element [v0, v1, ...] of the packed array is the one of the plain array whose
// index along an axis is the sum of v * step over the dimensions along that axis. Beyond the end of
// the plain array there are zeros.
//
//   plain [5, 8], dims {axis 0, extent 3, step 2}, {axis 1, extent 8, step 1},
//                      {axis 0, extent 2, step 1}
//   packed [3, 8, 2], element [i, j, k] = plain[2*i + k, j], or 0 where 2*i + k is 5
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
  int32_t axis = 0;    // of the plain array
  int64_t extent = 1;  // of the packed one
  int64_t step = 1;    // along the axis
  bool operator==(const PackedDim&) const = default;
};

struct Packing {
  std::vector<int64_t> shape = {};   // of the plain array, in elements
  std::vector<PackedDim> dims = {};  // of the packed one, outermost first
  bool operator==(const Packing&) const = default;
};

// Refuses an axis that is not there, extents and steps below 1, more than 2^60 elements, and an
// element of the plain array that no element of the packed one is.
Status CheckPacking(const Packing& packing);

// Below: of packings that CheckPacking accepts.
std::vector<int64_t> PackedShape(const Packing& packing);
int64_t PackedElements(const Packing& packing);

// `plain` and `packed` are row-major arrays of elements of `element_bytes`, of all elements that
// they have. About 1 GB/s, more where elements that lie side by side stay so.
void Pack(const Packing& packing, int64_t element_bytes, std::span<const std::byte> plain,
          std::span<std::byte> packed);

// "[5, 8] by [0: 2, 1: 1, 0: 1]": the plain shape, and axis and step of each dimension.
std::string PackingText(const Packing& packing);

}  // namespace kiln
