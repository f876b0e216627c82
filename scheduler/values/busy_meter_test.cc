#include "scheduler/values/busy_meter.h"

#include <gtest/gtest.h>

namespace kiln::scheduler {
namespace {

TEST(BusyMeter, SharesOfTheLastMinute) {
  BusyMeter meter;
  EXPECT_EQ(meter.Read(5).devices, 0);
  EXPECT_EQ(meter.Read(5).busy_share, 0);
  meter.Add(1, 101, 1);  // from 100 to 101
  EXPECT_DOUBLE_EQ(meter.Read(101).busy_share, 1);
  EXPECT_DOUBLE_EQ(meter.Read(104).busy_share, 0.25);
  meter.Add(1, 104, 1);
  meter.Add(2, 104, 2);  // since 102
  const BusyMeter::Reading reading = meter.Read(104);
  EXPECT_EQ(reading.devices, 2);
  EXPECT_DOUBLE_EQ(reading.busy_share, 4.0 / (4 + 2));
  EXPECT_DOUBLE_EQ(reading.trials_per_s, 3.0 / 4);
  EXPECT_EQ(reading.elites_share, 0);
  // Half of the first trial is older than a minute.
  EXPECT_DOUBLE_EQ(meter.Read(160.5).busy_share, 3.5 / (60 + 58.5));
  EXPECT_DOUBLE_EQ(meter.Read(1000).busy_share, 0);
  meter.Add(1, 1000, 1000);
  EXPECT_DOUBLE_EQ(meter.Read(1000).busy_share, 0.5);
  // A reading of an elite counts as busy time, but not as a trial.
  meter.Add(2, 1000, 30, BusyMeter::Use::kElite);
  EXPECT_DOUBLE_EQ(meter.Read(1000).busy_share, 0.75);
  EXPECT_DOUBLE_EQ(meter.Read(1000).elites_share, 0.25);
  EXPECT_DOUBLE_EQ(meter.Read(1000).trials_per_s, 1.0 / 60);
}

}  // namespace
}  // namespace kiln::scheduler
