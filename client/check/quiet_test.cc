#include "client/check/quiet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace kiln::client {
namespace {

TEST(Quiet, TheSpreadIsThatOfNineInTen) {
  std::vector<double> readings_s(20, 1e-3);
  EXPECT_EQ(SpreadOf(readings_s), 0);
  // One interruption.
  readings_s[3] = 1;
  EXPECT_EQ(SpreadOf(readings_s), 0);
  for (int i = 5; i < 10; ++i) readings_s[i] = 1.3e-3;
  EXPECT_NEAR(SpreadOf(readings_s), 0.3, 1e-9);
  EXPECT_EQ(SpreadOf({}), 0);
}

TEST(Quiet, SaysHowBusyTheMachineIs) {
  EXPECT_THAT(QuietText(), testing::AllOf(testing::StartsWith("readings of one loop differ by "),
                                          testing::HasSubstr(" cores")));
}

}  // namespace
}  // namespace kiln::client
