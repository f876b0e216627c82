#include "base/numbers/float8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/numbers/float16.h"

namespace kiln {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Case {
  Float8Format format;
  int exponent_bits;
  bool has_infinity;
};
constexpr Case kCases[] = {{kE4M3, 4, false}, {kE5M2, 5, true}};

// Computes the value by the definition of the format.
double Value(const Case& c, uint32_t bits) {
  const int m = c.format.mantissa_bits, exponent = static_cast<int>(bits & 0x7f) >> m;
  const int mantissa = static_cast<int>(bits) & ((1 << m) - 1);
  const double sign = bits & 0x80 ? -1 : 1;
  if (exponent == (1 << c.exponent_bits) - 1) {
    if (c.has_infinity) return mantissa == 0 ? sign * kInf : kNaN;
    if (mantissa == (1 << m) - 1) return kNaN;
  }
  const double fraction = std::ldexp(mantissa, -m);
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - c.format.bias)
                               : std::ldexp(1 + fraction, exponent - c.format.bias));
}

// Returns the nearest of all finite numbers; of two that are equally near, the even one.
uint8_t Nearest(const Case& c, double value) {
  if (std::isnan(value)) return 0x7f;
  uint8_t best = 0;
  for (uint8_t bits = 0; bits <= c.format.largest; ++bits) {
    const double near = std::abs(std::abs(value) - Value(c, bits)),
                 far = std::abs(std::abs(value) - Value(c, best));
    if (near < far || (near == far && bits % 2 == 0)) best = bits;
  }
  if (std::isinf(value)) best = c.format.largest;
  return static_cast<uint8_t>(best | (std::signbit(value) ? 0x80 : 0));
}

TEST(Float8Test, EveryNumberIsWhatTheFormatSays) {
  for (const Case& c : kCases) {
    for (uint32_t bits = 0; bits < 256; ++bits) {
      const float value = Float8ToFloat(static_cast<uint8_t>(bits), c.format);
      if (std::isnan(Value(c, bits))) {
        EXPECT_TRUE(std::isnan(value)) << bits;
        continue;
      }
      EXPECT_EQ(value, Value(c, bits)) << bits;
      EXPECT_EQ(std::signbit(value), bits >= 0x80) << bits;
      if (!std::isinf(value)) {
        EXPECT_EQ(FloatToFloat8(value, c.format), bits);
      }
    }
  }
}

TEST(Float8Test, EveryHalfGoesToTheNearest) {
  for (const Case& c : kCases) {
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const float value = HalfToFloat(static_cast<uint16_t>(bits));
      const uint8_t got = FloatToFloat8(value, c.format);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(Float8ToFloat(got, c.format))) << bits;
      } else {
        ASSERT_EQ(got, Nearest(c, value)) << value;
      }
    }
  }
}

// The numbers beside such a middle are closer to it than a half can tell.
TEST(Float8Test, MiddlesOfNeighboursGoToTheEven) {
  for (const Case& c : kCases) {
    for (uint8_t bits = 0; bits < c.format.largest; ++bits) {
      const auto low = Float8ToFloat(bits, c.format),
                 high = Float8ToFloat(static_cast<uint8_t>(bits + 1), c.format);
      const float middle = (low + high) / 2;
      EXPECT_EQ(FloatToFloat8(middle, c.format), bits + bits % 2) << middle;
      EXPECT_EQ(FloatToFloat8(std::nextafter(middle, low), c.format), bits) << middle;
      EXPECT_EQ(FloatToFloat8(-std::nextafter(middle, high), c.format), (bits + 1) | 0x80);
    }
  }
}

TEST(Float8Test, WhatIsTooLargeBecomesTheLargest) {
  for (const float value : {465.0f, 1e30f, std::numeric_limits<float>::max(), kInf}) {
    EXPECT_EQ(FloatToFloat8(value, kE4M3), 0x7e);
    EXPECT_EQ(FloatToFloat8(-value, kE4M3), 0xfe);
  }
  EXPECT_EQ(FloatToFloat8(61441, kE5M2), 0x7b);
  EXPECT_EQ(FloatToFloat8(-kInf, kE5M2), 0xfb);
  EXPECT_EQ(Float8ToFloat(0x7e, kE4M3), 448);
  EXPECT_EQ(Float8ToFloat(0x7b, kE5M2), 57344);
  EXPECT_EQ(Float8ToFloat(0xfc, kE5M2), -kInf);
  for (const Case& c : kCases) {
    EXPECT_EQ(FloatToFloat8(kNaN, c.format) & 0x7f, 0x7f);
    EXPECT_EQ(FloatToFloat8(std::numeric_limits<float>::denorm_min(), c.format), 0);
  }
}

}  // namespace
}  // namespace kiln
