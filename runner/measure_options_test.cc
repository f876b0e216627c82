#include "runner/measure_options.h"

#include <gtest/gtest.h>

namespace kiln::runner {
namespace {

TEST(MeasureOptions, ZerosAreReplacedByDefaults) {
  const v1::MeasureOptions options = WithDefaults({});
  EXPECT_EQ(options.number(), 3u);
  EXPECT_EQ(options.repeat(), 1u);
  EXPECT_EQ(options.timeout_ms(), 10000u);
  v1::MeasureOptions asked;
  asked.set_number(7);
  asked.set_repeat(1u << 31);
  asked.set_timeout_ms(5);
  EXPECT_EQ(WithDefaults(asked).number(), 7u);
  EXPECT_EQ(WithDefaults(asked).repeat(), 100000u);
  EXPECT_EQ(WithDefaults(asked).timeout_ms(), 5u);
}

TEST(MeasureOptions, TheWayOfMeasuringFollowsFromTheDeviceAndTheOptions) {
  v1::MeasureOptions options;
  EXPECT_EQ(MeasuredAs("cpu", options), "call/warm/free");
  EXPECT_EQ(MeasuredAs("cuda", options), "graph/warm/free");
  options.set_flush_cache(true);
  EXPECT_EQ(MeasuredAs("cuda", options), "graph/cold/free");
  options.set_single_launches(true);
  EXPECT_EQ(MeasuredAs("cuda", options), "stream/cold/free");
  EXPECT_EQ(MeasuredAs("null", options), "call/cold/free");
}

TEST(MeasureOptions, ProgramsStopEarlyOnlyBesideABestCost) {
  v1::MeasureOptions options;
  options.set_early_stop_ratio(4);
  EXPECT_EQ(EarlyStopSeconds(options), std::nullopt);
  EXPECT_EQ(TimingFrom(options).clearly_slower_s, std::nullopt);
  EXPECT_EQ(TimingFrom(options).slower_s, std::nullopt);
  options.set_best_cost_s(0.5);
  EXPECT_EQ(EarlyStopSeconds(options), 2);
  EXPECT_EQ(TimingFrom(options).early_stop_s, 2);
  EXPECT_EQ(TimingFrom(options).clearly_slower_s, 0.625);
  EXPECT_DOUBLE_EQ(TimingFrom(options).slower_s.value_or(0), 0.55);
}

TEST(MeasureOptions, OneRunOfALongProgramMayBeEnough) {
  v1::MeasureOptions options;
  options.set_timeout_ms(10000);
  EXPECT_FALSE(IsEnough(options, 0.9, 9.9));
  EXPECT_FALSE(IsEnough(options, 2, 3));
  // Another run would end after the limit.
  EXPECT_TRUE(IsEnough(options, 5, 5));
  options.set_early_stop_ratio(4);
  options.set_best_cost_s(0.25);
  EXPECT_TRUE(IsEnough(options, 1.5, 1.6));
}

}  // namespace
}  // namespace kiln::runner
