#include "base/arrays/unpack.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "base/status_testing.h"

namespace kiln {
namespace {

// Packs and unpacks elements of this size.
std::vector<std::byte> PackAndUnpack(const Packing& packing, size_t element_bytes) {
  EXPECT_OK(CheckPacking(packing));
  size_t elements = 1;
  for (const int64_t extent : packing.shape) elements *= static_cast<size_t>(extent);
  std::vector<std::byte> plain(elements * element_bytes);
  for (size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<std::byte>(i + 1);
  std::vector<std::byte> packed(static_cast<size_t>(PackedElements(packing)) * element_bytes);
  Pack(packing, static_cast<int64_t>(element_bytes), plain, packed);
  std::vector<std::byte> back(plain.size());
  Unpack(packing, static_cast<int64_t>(element_bytes), packed, back);
  EXPECT_EQ(back, plain) << PackingText(packing);
  return packed;
}

TEST(UnpackTest, TakesPackingBack) {
  for (const size_t element_bytes : {1, 2, 4, 8}) {
    PackAndUnpack({.shape = {2, 4}, .dims = {{1, 2, 2}, {0, 2, 1}, {1, 2, 1}}}, element_bytes);
    PackAndUnpack({.shape = {5, 8}, .dims = {{0, 3, 2}, {1, 8, 1}, {0, 2, 1}}}, element_bytes);
    PackAndUnpack({.shape = {3, 1}, .dims = {{0, 2, 1}, {0, 2, 2}}}, element_bytes);
    PackAndUnpack({.shape = {4}, .dims = {{0, 2, 2}, {0, 3, 1}}}, element_bytes);
    PackAndUnpack({.shape = {1, 1}, .dims = {}}, element_bytes);
  }
}

TEST(UnpackTest, PaddingIsNotLookedAt) {
  const Packing packing{.shape = {3}, .dims = {{0, 2, 2}, {0, 2, 1}}};
  std::vector<std::byte> packed = PackAndUnpack(packing, 1);
  packed[3] = std::byte{99};
  std::vector<std::byte> plain(3);
  Unpack(packing, 1, packed, plain);
  EXPECT_EQ(plain, (std::vector{std::byte{1}, std::byte{2}, std::byte{3}}));
}

}  // namespace
}  // namespace kiln
