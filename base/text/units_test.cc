#include "base/text/units.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace kiln {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(UnitsTest, Seconds) {
  EXPECT_EQ(FormatSeconds(1.234e-3), "1.234 ms");
  EXPECT_EQ(FormatSeconds(10.5e-6), "10.50 us");
  EXPECT_EQ(FormatSeconds(2.5), "2.500 s");
  EXPECT_EQ(FormatSeconds(123.4), "123.4 s");
  EXPECT_EQ(FormatSeconds(99.996e-6), "100.0 us");
  EXPECT_EQ(FormatSeconds(999.99e-6), "1.000 ms");
  EXPECT_EQ(FormatSeconds(9.99996e-3), "10.00 ms");
  EXPECT_EQ(FormatSeconds(3e-10), "0.3 ns");
  EXPECT_EQ(FormatSeconds(0), "0 s");
  EXPECT_EQ(FormatSeconds(-1e-3), "-1.000 ms");
  EXPECT_EQ(FormatSeconds(kInf), "inf s");
}

TEST(UnitsTest, Elapsed) {
  EXPECT_EQ(FormatElapsed(4.23), "4.2 s");
  EXPECT_EQ(FormatElapsed(59.96), "1m 00s");
  EXPECT_EQ(FormatElapsed(187), "3m 07s");
  EXPECT_EQ(FormatElapsed(7500), "2h 05m");
  EXPECT_EQ(FormatElapsed(-5), "-5.0 s");
}

TEST(UnitsTest, Flops) {
  EXPECT_EQ(FormatFlops(43.21e9), "43.21 GFLOP/s");
  EXPECT_EQ(FormatFlops(1.5e12), "1.500 TFLOP/s");
  EXPECT_EQ(FormatFlops(12), "12.00 FLOP/s");
  EXPECT_EQ(FormatFlops(0), "0 FLOP/s");
  EXPECT_EQ(FormatFlops(kInf), "inf FLOP/s");
}

TEST(UnitsTest, Bytes) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.50 KiB");
  EXPECT_EQ(FormatBytes(int64_t{78} << 30), "78.00 GiB");
  EXPECT_EQ(FormatBytes((int64_t{1} << 20) - 1), "1.00 MiB");
  EXPECT_EQ(FormatBytes(-2048), "-2.00 KiB");
  EXPECT_EQ(FormatBytes(INT64_MAX), "8.00 EiB");
  EXPECT_EQ(FormatBytes(INT64_MIN), "-8.00 EiB");
}

TEST(UnitsTest, Count) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1000), "1,000");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
  EXPECT_EQ(FormatCount(-123456), "-123,456");
  EXPECT_EQ(FormatCount(INT64_MIN), "-9,223,372,036,854,775,808");
}

}  // namespace
}  // namespace kiln
