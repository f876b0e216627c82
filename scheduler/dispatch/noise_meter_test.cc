#include "scheduler/dispatch/noise_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/noise_mark.h"

namespace kiln::scheduler {
namespace {

store::Record Timed(double spread) {
  store::Record record;
  record.costs_s = {1e-3};
  record.message = device::PrintNoiseMark(spread);
  return record;
}

TEST(NoiseMeter, SaysOnceThatTheMachineIsBusy) {
  NoiseMeter meter;
  for (int i = 0; i < 2; ++i) meter.Add(Timed(0.5));
  for (int i = 0; i < 4; ++i) meter.Add(Timed(0));
  EXPECT_EQ(meter.notice(), "");
  store::Record failed = Timed(0.5);
  failed.error = 5;
  meter.Add(failed);
  EXPECT_EQ(meter.notice(), "");
  meter.Add(Timed(0.4));
  const std::string said = meter.notice();
  EXPECT_THAT(said, testing::HasSubstr("of 7 trials 3 were timed on a busy machine: its readings "
                                       "differ by 40%; results are better"));
  meter.Add(Timed(0.9));
  EXPECT_EQ(meter.notice(), said);
}

TEST(NoiseMeter, AFewOfManyAreChance) {
  NoiseMeter meter;
  for (int i = 0; i < 100; ++i) meter.Add(Timed(i % 20 == 0 ? 0.5 : 0));
  EXPECT_EQ(meter.notice(), "");
}

}  // namespace
}  // namespace kiln::scheduler
