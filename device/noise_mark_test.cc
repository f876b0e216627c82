#include "device/noise_mark.h"

#include <gtest/gtest.h>

namespace kiln::device {
namespace {

TEST(NoiseMark, ParsesBackAndSaysNothingOfAQuietMachine) {
  EXPECT_EQ(PrintNoiseMark(0.1), "");
  EXPECT_EQ(PrintNoiseMark(0.38), "busy machine: its readings differ by 38%");
  for (const double share : {0.26, 0.5, 4.0}) {
    EXPECT_DOUBLE_EQ(ParseNoiseMark(PrintNoiseMark(share) + ", load 3 on 2 cores").value(), share);
  }
  EXPECT_FALSE(ParseNoiseMark("").has_value());
  EXPECT_FALSE(ParseNoiseMark("timed in one call").has_value());
  EXPECT_FALSE(ParseNoiseMark("busy machine: its readings differ by x").has_value());
}

}  // namespace
}  // namespace kiln::device
