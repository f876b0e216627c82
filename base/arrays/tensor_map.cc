#include "base/arrays/tensor_map.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {
namespace {

constexpr size_t kMaxRank = 5;
constexpr int64_t kMaxExtent = int64_t{1} << 32, kMaxStride = int64_t{1} << 40, kMaxBox = 256,
                  kPieceBytes = 16;

Status CheckDimension(const TensorMap& map, size_t d) {
  if (map.extents[d] < 1 || map.extents[d] > kMaxExtent)
    return InvalidArgument("extent {} is {}, expected 1 to {}", d, map.extents[d], kMaxExtent);
  if (map.box[d] < 1 || map.box[d] > kMaxBox)
    return InvalidArgument("extent {} of its box is {}, expected 1 to {}", d, map.box[d], kMaxBox);
  if (d == 0) return OkStatus();
  const int64_t stride = map.strides[d - 1];
  if (stride < kPieceBytes || stride >= kMaxStride || stride % kPieceBytes != 0)
    return InvalidArgument("stride {} is {} bytes, expected a multiple of {} below {}", d, stride,
                           kPieceBytes, kMaxStride);
  return OkStatus();
}

Status Check(const TensorMap& map) {
  const size_t rank = map.extents.size();
  if (rank < 1 || rank > kMaxRank || map.strides.size() + 1 != rank || map.box.size() != rank) {
    return InvalidArgument(
        "it has {} extents, {} strides and {} extents of a box, "
        "expected n, n - 1 and n, where n is 1 to {}",
        rank, map.strides.size(), map.box.size(), kMaxRank);
  }
  const uint32_t bytes = map.element_bytes, swizzle = map.swizzle_bytes;
  if (bytes != 1 && bytes != 2 && bytes != 4)
    return InvalidArgument("its elements have {} bytes, expected 1, 2 or 4", bytes);
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
    return InvalidArgument("it swizzles {} bytes, expected 0, 32, 64 or 128", swizzle);
  for (size_t d = 0; d < rank; ++d) KILN_RETURN_IF_ERROR(CheckDimension(map, d));
  const int64_t row = map.box[0] * bytes;
  if (row % kPieceBytes != 0 || (swizzle != 0 && row > swizzle)) {
    return InvalidArgument(
        "a row of its box has {} bytes, expected a multiple of {} and no more than is swizzled, {}",
        row, kPieceBytes, swizzle);
  }
  return OkStatus();
}

}  // namespace

Status CheckTensorMap(const TensorMap& map) {
  return Annotate(Check(map), fmt::format("tensor map of argument {}", map.arg));
}

int64_t BoxBytes(const TensorMap& map) {
  int64_t bytes = map.element_bytes;
  for (const int64_t extent : map.box) bytes *= extent;
  return bytes;
}

int64_t ReachedBytes(const TensorMap& map) {
  int64_t bytes = map.extents[0] * map.element_bytes;
  for (size_t d = 1; d < map.extents.size(); ++d)
    bytes += (map.extents[d] - 1) * map.strides[d - 1];
  return bytes;
}

std::string TensorMapText(const TensorMap& map) {
  return fmt::format(
      "argument {}, elements of {} bytes, extents [{}], strides [{}], box [{}], swizzle {}",
      map.arg, map.element_bytes, fmt::join(map.extents, ", "), fmt::join(map.strides, ", "),
      fmt::join(map.box, ", "), map.swizzle_bytes);
}

}  // namespace kiln
