#include "base/process/machine_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"

namespace kiln {
namespace {

TEST(MachineLoad, SharesAreOfTheTimeBetween) {
  ASSERT_OK_AND_ASSIGN(const CpuTimes before,
                       ParseCpuTimes("cpu  100 0 50 800 40 5 5 0 0 0\ncpu0 1 2 3\n"));
  ASSERT_OK_AND_ASSIGN(const CpuTimes after,
                       ParseCpuTimes("cpu  150 0 60 810 40 5 5 30 0 0\ncpu0 1 2 3\n"));
  EXPECT_DOUBLE_EQ(BusyShare(before, after), 0.6);
  EXPECT_DOUBLE_EQ(StolenShare(before, after), 0.3);
  EXPECT_EQ(BusyShare(after, after), 0);
  EXPECT_THAT(ParseCpuTimes("intr 1 2 3\n"),
              StatusIs(StatusCode::kInvalidArgument, testing::HasSubstr("found 'intr 1 2 3'")));
}

TEST(MachineLoad, ThisMachineSaysHowBusyItIs) {
  EXPECT_THAT(LoadText(), testing::HasSubstr(" cores"));
  ASSERT_OK_AND_ASSIGN(const CpuTimes times, ReadCpuTimes());
  EXPECT_GT(times.all, 0);
}

}  // namespace
}  // namespace kiln
