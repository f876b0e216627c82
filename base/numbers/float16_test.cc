#include "base/numbers/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kiln {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(Float16Test, EveryHalfSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = HalfToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(FloatToHalf(value), bits) << value;
  }
  EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(kNaN))));
}

TEST(Float16Test, HalvesRoundToNearestEven) {
  // Half way, rounded down to even.
  EXPECT_EQ(FloatToHalf(1.0f + 0x1p-11f), 0x3c00);
  // Half way, rounded up to even.
  EXPECT_EQ(FloatToHalf(1.0f + 3 * 0x1p-11f), 0x3c02);
  EXPECT_EQ(FloatToHalf(65519.0f), 0x7bff);
  // The first number that rounds to infinity.
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  // Half of the smallest number, rounded to even: zero.
  EXPECT_EQ(FloatToHalf(0x1p-25f), 0x0000);
  EXPECT_EQ(FloatToHalf(0x1.8p-25f), 0x0001);
  EXPECT_EQ(FloatToHalf(-0.0f), 0x8000);
}

TEST(Float16Test, BrainFloatsRoundToNearestEven) {
  EXPECT_EQ(FloatToBFloat16(1.0f), 0x3f80);
  EXPECT_EQ(FloatToBFloat16(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(FloatToBFloat16(1.0f + 3 * 0x1p-8f), 0x3f82);
  EXPECT_EQ(FloatToBFloat16(kInf), 0x7f80);
  EXPECT_TRUE(std::isnan(BFloat16ToFloat(FloatToBFloat16(kNaN))));
}

}  // namespace
}  // namespace kiln
