#include "base/numbers/integers.h"

#include <gtest/gtest.h>

#include <vector>

namespace kiln {
namespace {

TEST(Integers, CeilDivIsTheLeastThatIsNotBelow) {
  for (int64_t a = -30; a <= 30; ++a) {
    for (int64_t b = 1; b <= 8; ++b) {
      const int64_t q = CeilDiv(a, b);
      EXPECT_GE(q * b, a) << a << " " << b;
      EXPECT_LT((q - 1) * b, a) << a << " " << b;
    }
  }
  EXPECT_EQ(CeilDiv(INT64_MAX, 2), (int64_t{1} << 62));
  EXPECT_EQ(CeilDiv(INT64_MAX, INT64_MAX), 1);
  EXPECT_EQ(CeilDiv(INT64_MIN, 1), INT64_MIN);
}

TEST(Integers, ProductsThatDoNotFitAreNone) {
  EXPECT_EQ(CheckedMul(int64_t{1} << 31, int64_t{1} << 31), int64_t{1} << 62);
  EXPECT_EQ(CheckedMul(int64_t{1} << 32, int64_t{1} << 31), std::nullopt);
  EXPECT_EQ(CheckedMul(INT64_MIN, 1), INT64_MIN);
  EXPECT_EQ(CheckedMul(INT64_MIN, -1), std::nullopt);
}

TEST(Integers, RoundsUpToMultiples) {
  EXPECT_EQ(RoundUp(0, 16), 0);
  EXPECT_EQ(RoundUp(1, 16), 16);
  EXPECT_EQ(RoundUp(16, 16), 16);
  EXPECT_EQ(RoundUp(-1, 16), 0);
}

// No product of counts wraps around to a negative or a small number.
TEST(Integers, ProductsOfCountsSaturate) {
  const auto product = [](std::vector<int64_t> counts) { return ProductOfCounts(counts); };
  EXPECT_EQ(product({}), 1);
  EXPECT_EQ(product({3, 5, 7}), 105);
  EXPECT_EQ(product({3, 0, 7}), 0);
  EXPECT_EQ(product({int64_t{1} << 32, int64_t{1} << 32}), INT64_MAX);
  EXPECT_EQ(product({int64_t{1} << 32, int64_t{1} << 32, 2, 2}), INT64_MAX);
  EXPECT_EQ(MultiplyCounts(INT64_MAX, 4), INT64_MAX);
}

}  // namespace
}  // namespace kiln
