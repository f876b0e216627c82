#include "base/arrays/tensor_map.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/status_testing.h"

namespace kiln {
namespace {

// Returns a map of rows of 64 elements of a float16 [512, 1024].
TensorMap Rows() {
  return {.arg = 3,
          .element_bytes = 2,
          .extents = {1024, 512},
          .strides = {2048},
          .box = {64, 128},
          .swizzle_bytes = 128};
}

TEST(TensorMap, TellsItsBytes) {
  EXPECT_OK(CheckTensorMap(Rows()));
  EXPECT_EQ(BoxBytes(Rows()), 64 * 128 * 2);
  EXPECT_EQ(ReachedBytes(Rows()), 1024 * 512 * 2);
}

TEST(TensorMap, PrintsAllOfIt) {
  EXPECT_EQ(TensorMapText(Rows()),
            "argument 3, elements of 2 bytes, extents [1024, 512], strides [2048], box [64, 128], "
            "swizzle 128");
}

TEST(TensorMap, RefusesWhatTheDriverRefuses) {
  const auto refused = [](const std::function<void(TensorMap&)>& change) {
    TensorMap map = Rows();
    change(map);
    return std::string(CheckTensorMap(map).message());
  };
  EXPECT_EQ(refused([](TensorMap& m) { m.extents[1] = 0; }),
            "tensor map of argument 3: extent 1 is 0, expected 1 to 4294967296");
  EXPECT_EQ(refused([](TensorMap& m) { m.box[1] = 257; }),
            "tensor map of argument 3: extent 1 of its box is 257, expected 1 to 256");
  EXPECT_EQ(refused([](TensorMap& m) { m.strides[0] = 2040; }),
            "tensor map of argument 3: stride 1 is 2040 bytes, expected a multiple of 16 below "
            "1099511627776");
  EXPECT_EQ(refused([](TensorMap& m) { m.element_bytes = 8; }),
            "tensor map of argument 3: its elements have 8 bytes, expected 1, 2 or 4");
  EXPECT_EQ(refused([](TensorMap& m) { m.swizzle_bytes = 16; }),
            "tensor map of argument 3: it swizzles 16 bytes, expected 0, 32, 64 or 128");
  EXPECT_EQ(
      refused([](TensorMap& m) { m.swizzle_bytes = 64; }),
      "tensor map of argument 3: a row of its box has 128 bytes, expected a multiple of 16 and "
      "no more than is swizzled, 64");
  EXPECT_EQ(refused([](TensorMap& m) { m.box[0] = 4; }),
            "tensor map of argument 3: a row of its box has 8 bytes, expected a multiple of 16 and "
            "no more than is swizzled, 128");
  EXPECT_EQ(
      refused([](TensorMap& m) { m.strides.clear(); }),
      "tensor map of argument 3: it has 2 extents, 0 strides and 2 extents of a box, expected "
      "n, n - 1 and n, where n is 1 to 5");
}

}  // namespace
}  // namespace kiln
