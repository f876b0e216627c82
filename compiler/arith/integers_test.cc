#include "compiler/arith/integers.h"

#include <gtest/gtest.h>

namespace kiln::arith {
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

}  // namespace
}  // namespace kiln::arith
