#include "runner/timing.h"

#include <numeric>
#include <set>

#include "base/status_testing.h"

namespace kiln::runner {
namespace {

using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

// A device whose calls take call_s, on a clock that only they and sleeping move.
struct FakeDevice {
  double call_s = 1e-3;
  double now_s = 100;
  double slept_s = 0;
  int flushes = 0;
  // The numbers of all time_batch calls.
  std::vector<int64_t> batches;
  // Replaces call_s.
  std::function<double(size_t batch)> cost;

  TimingDevice Device() {
    TimingDevice device;
    device.time_batch = [this](int64_t number) -> StatusOr<double> {
      const double one_s = cost ? cost(batches.size()) : call_s;
      batches.push_back(number);
      now_s += one_s * static_cast<double>(number);
      return one_s * static_cast<double>(number);
    };
    device.flush_cache = [this] { ++flushes; };
    device.sleep = [this](double seconds) {
      slept_s += seconds;
      now_s += seconds;
    };
    device.now_s = [this] { return now_s; };
    return device;
  }
  int64_t Calls() const { return std::accumulate(batches.begin(), batches.end(), int64_t{0}); }
};

TEST(TimingTest, RunsNumberCallsPerRepeat) {
  FakeDevice device;
  ASSERT_OK_AND_ASSIGN(Timing timing, TimeProgram({.number = 5, .repeat = 2}, device.Device()));
  EXPECT_THAT(timing.costs_s, ElementsAre(DoubleNear(1e-3, 1e-12), DoubleNear(1e-3, 1e-12)));
  // One untimed call, one timed call, two repeats.
  EXPECT_THAT(device.batches, ElementsAre(1, 1, 5, 5));
  EXPECT_FALSE(timing.stopped_early);
}

TEST(TimingTest, GrowsTheBatchToTheMinimumTime) {
  FakeDevice device;
  device.call_s = 1e-5;
  ASSERT_OK_AND_ASSIGN(Timing timing,
                       TimeProgram({.repeat = 3, .min_repeat_s = 0.1}, device.Device()));
  EXPECT_THAT(timing.costs_s, SizeIs(3));
  EXPECT_THAT(timing.costs_s, Each(DoubleNear(1e-5, 1e-12)));
  EXPECT_GE(timing.number, 10300);
  EXPECT_LE(timing.number, 10301);
  // The prediction was right at once.
  EXPECT_THAT(device.batches, SizeIs(3 + 3));
  EXPECT_EQ(device.batches[2], 625);
}

// Each reading costs 2 us besides its calls of 5 us: three calls would show 5.67 us.
TEST(TimingTest, ShortCallsAreManyWhereAReadingHasACostOfItsOwn) {
  FakeDevice device;
  TimingDevice timing_device = device.Device();
  timing_device.time_batch = [&](int64_t number) -> StatusOr<double> {
    device.batches.push_back(number);
    return 2e-6 + 5e-6 * static_cast<double>(number);
  };
  timing_device.calls_per_reading = [](int64_t wanted, double call_s) {
    return call_s >= 1e-3 ? wanted : (wanted + 19) / 20 * 20;
  };
  ASSERT_OK_AND_ASSIGN(const Timing timing, TimeProgram({.number = 3, .repeat = 2}, timing_device));
  EXPECT_THAT(device.batches, ElementsAre(1, 1, 20, 20));
  EXPECT_THAT(timing.costs_s, Each(DoubleNear(5.1e-6, 1e-12)));
  device.batches.clear();
  ASSERT_OK(TimeProgram({.min_repeat_s = 1e-3}, timing_device));
  // The pilot lasts 62.5 us: 8 calls of the first one's 7 us, which is rounded up to 20 calls of
  // 5.1 us. The batch has as many calls as 1 ms holds.
  EXPECT_THAT(device.batches, ElementsAre(1, 1, 20, 220));
  // With flushed caches a batch is one call.
  device.batches.clear();
  ASSERT_OK(TimeProgram({.number = 3, .flush_cache = true}, timing_device));
  EXPECT_THAT(device.batches, ElementsAre(1, 1));
}

TEST(TimingTest, CallsThatAreColdWithoutAFlushComeInBatches) {
  FakeDevice device;
  device.call_s = 1e-5;
  TimingDevice timing_device = device.Device();
  timing_device.flush_cache = nullptr;
  timing_device.calls_per_reading = [](int64_t wanted, double) { return (wanted + 6) / 7 * 7; };
  ASSERT_OK_AND_ASSIGN(
      const Timing timing,
      TimeProgram({.repeat = 2, .min_repeat_s = 2e-3, .flush_cache = true}, timing_device));
  EXPECT_THAT(device.batches, ElementsAre(1, 1, 14, 210, 210));
  EXPECT_THAT(timing.costs_s, Each(DoubleNear(1e-5, 1e-12)));
  EXPECT_EQ(device.flushes, 0);
}

TEST(TimingTest, GrowsOnWhenTheFirstCallWasSlow) {
  FakeDevice device;
  device.cost = [](size_t batch) { return batch < 2 ? 5e-3 : 1e-5; };
  ASSERT_OK_AND_ASSIGN(Timing timing, TimeProgram({.min_repeat_s = 0.02}, device.Device()));
  ASSERT_THAT(device.batches, SizeIs(4));
  // 20 ms / 5 ms + 1
  EXPECT_EQ(device.batches[2], 5);
  // The batch is corrected.
  EXPECT_GE(device.batches[3], 2000);
  EXPECT_THAT(timing.costs_s, ElementsAre(DoubleNear(1e-5, 1e-12)));
}

TEST(TimingTest, GrowsByTheGoldenRatioAtLeast) {
  FakeDevice device;
  // The first batch is only just too short: one more call would do.
  device.cost = [](size_t batch) { return batch < 2 ? 1e-3 : 0.94e-3; };
  ASSERT_OK(TimeProgram({.min_repeat_s = 0.02}, device.Device()));
  // 21 * 1.618
  EXPECT_THAT(device.batches, ElementsAre(1, 1, 21, 33));
}

TEST(TimingTest, SlowProgramRunsNoMoreThanNeeded) {
  FakeDevice device;
  device.call_s = 0.5;
  ASSERT_OK_AND_ASSIGN(Timing timing,
                       TimeProgram({.number = 3, .min_repeat_s = 0.1}, device.Device()));
  // The untimed call and the reading.
  EXPECT_EQ(device.Calls(), 2);
  EXPECT_THAT(timing.costs_s, ElementsAre(0.5));
}

TEST(TimingTest, BudgetCutsRepeatsAndBatches) {
  FakeDevice device;
  device.call_s = 1;
  ASSERT_OK_AND_ASSIGN(Timing timing,
                       TimeProgram({.number = 1, .repeat = 100, .budget_s = 5}, device.Device()));
  EXPECT_THAT(timing.costs_s, SizeIs(4));
  EXPECT_LE(device.now_s, 100 + 5 + 1e-9);

  FakeDevice other;
  other.call_s = 1;
  ASSERT_OK_AND_ASSIGN(timing, TimeProgram({.number = 50, .budget_s = 6}, other.Device()));
  EXPECT_THAT(other.batches, ElementsAre(1, 1, 4));
  EXPECT_THAT(timing.costs_s, ElementsAre(1));
}

TEST(TimingTest, ExhaustedBudgetStillGivesOneReading) {
  FakeDevice device;
  device.call_s = 10;
  ASSERT_OK_AND_ASSIGN(Timing timing,
                       TimeProgram({.number = 3, .repeat = 3, .budget_s = 1}, device.Device()));
  EXPECT_THAT(timing.costs_s, ElementsAre(10));
  EXPECT_EQ(device.Calls(), 2);
}

TEST(TimingTest, SlowProgramStopsAfterTwoTimedCalls) {
  FakeDevice device;
  device.call_s = 0.02;
  ASSERT_OK_AND_ASSIGN(
      Timing timing,
      TimeProgram({.repeat = 5, .min_repeat_s = 1, .early_stop_s = 1e-2}, device.Device()));
  EXPECT_TRUE(timing.stopped_early);
  EXPECT_THAT(timing.costs_s, ElementsAre(0.02));
  EXPECT_EQ(device.Calls(), 3);
  // One call is enough if another call would take long.
  FakeDevice slow;
  slow.call_s = 0.6;
  ASSERT_OK_AND_ASSIGN(timing, TimeProgram({.early_stop_s = 1e-2}, slow.Device()));
  EXPECT_TRUE(timing.stopped_early);
  EXPECT_EQ(slow.Calls(), 2);
}

// Something else ran during the slow reading.
TEST(TimingTest, OneSlowReadingDoesNotEndAProgram) {
  FakeDevice device;
  device.cost = [](size_t batch) { return batch == 1 ? 0.03 : 0.005; };
  ASSERT_OK_AND_ASSIGN(Timing timing,
                       TimeProgram({.number = 3, .early_stop_s = 1e-2}, device.Device()));
  EXPECT_FALSE(timing.stopped_early);
  EXPECT_THAT(timing.costs_s, ElementsAre(DoubleNear(0.005, 1e-12)));
  // A slow reading that contradicts the checked run before it does not end the program either.
  FakeDevice checked;
  checked.cost = [](size_t batch) { return batch < 2 ? 0.03 : 0.005; };
  ASSERT_OK_AND_ASSIGN(
      timing,
      TimeProgram({.number = 3, .early_stop_s = 1e-2, .earlier_call_s = 0.006}, checked.Device()));
  EXPECT_FALSE(timing.stopped_early);

  const TimingOptions options{.min_repeat_s = 0.032, .clearly_slower_s = 1.25e-5};
  FakeDevice pilot;
  pilot.cost = [](size_t batch) { return batch == 2 ? 4e-5 : 1.2e-5; };
  ASSERT_OK_AND_ASSIGN(timing, TimeProgram(options, pilot.Device()));
  EXPECT_FALSE(timing.stopped_early);
  // Both batches are too slow, by less than they differ, so the long reading decides.
  FakeDevice differs;
  differs.cost = [](size_t batch) { return batch == 2 ? 2e-5 : batch == 3 ? 1.4e-5 : 1.2e-5; };
  ASSERT_OK_AND_ASSIGN(timing, TimeProgram(options, differs.Device()));
  EXPECT_FALSE(timing.stopped_early);
  EXPECT_THAT(timing.costs_s, ElementsAre(DoubleNear(1.2e-5, 1e-12)));
}

TEST(TimingTest, SaysHowFarReadingsDiffer) {
  FakeDevice device;
  ASSERT_OK_AND_ASSIGN(Timing timing, TimeProgram({.number = 5, .repeat = 3}, device.Device()));
  EXPECT_NEAR(timing.spread, 0, 1e-9);
  device.batches.clear();
  device.cost = [](size_t batch) { return batch == 3 ? 1.4e-3 : 1e-3; };
  ASSERT_OK_AND_ASSIGN(timing, TimeProgram({.number = 5, .repeat = 3}, device.Device()));
  EXPECT_NEAR(timing.spread, 0.4, 1e-9);
}

TEST(TimingTest, ClearlySlowerProgramsGetAShortReading) {
  FakeDevice device;
  device.cost = [](size_t batch) { return batch < 2 ? 2e-5 : 1.3e-5; };
  const TimingOptions options{.min_repeat_s = 0.032, .clearly_slower_s = 1.25e-5};
  ASSERT_OK_AND_ASSIGN(Timing timing, TimeProgram(options, device.Device()));
  EXPECT_TRUE(timing.stopped_early);
  EXPECT_THAT(timing.costs_s, ElementsAre(DoubleNear(1.3e-5, 1e-12)));
  EXPECT_THAT(device.batches, ElementsAre(1, 1, 100, 100));

  FakeDevice faster;
  faster.cost = [](size_t batch) { return batch < 2 ? 2e-5 : 1.2e-5; };
  ASSERT_OK_AND_ASSIGN(timing, TimeProgram(options, faster.Device()));
  EXPECT_FALSE(timing.stopped_early) << "what a call by itself takes says nothing";
  EXPECT_THAT(faster.batches, ElementsAre(1, 1, 100, 2747));
}

TEST(TimingTest, SlowerProgramsGetAShortReadingWhileAnotherTrialWaits) {
  const TimingOptions options{
      .min_repeat_s = 0.032, .clearly_slower_s = 1.25e-5, .slower_s = 1.1e-5};
  // Times a program whose batches but the first take so long a call.
  const auto time = [&](double first_s, double call_s, bool is_wanted) {
    FakeDevice device;
    device.cost = [=](size_t batch) { return batch < 2 ? 2e-5 : batch == 2 ? first_s : call_s; };
    TimingDevice timing_device = device.Device();
    timing_device.is_wanted = [=] { return is_wanted; };
    auto timing = TimeProgram(options, timing_device);
    EXPECT_OK(timing);
    return *timing;
  };
  Timing timing = time(1.15e-5, 1.15e-5, true);
  EXPECT_TRUE(timing.stopped_early);
  EXPECT_THAT(timing.costs_s, ElementsAre(DoubleNear(1.15e-5, 1e-12)));
  EXPECT_EQ(timing.number, 100);
  timing = time(1.15e-5, 1.15e-5, false);
  EXPECT_FALSE(timing.stopped_early);
  EXPECT_GT(timing.number, 2000);
  EXPECT_FALSE(time(1.05e-5, 1.05e-5, true).stopped_early);
  EXPECT_FALSE(time(1.25e-5, 1.15e-5, true).stopped_early)
      << "too slow by less than the two batches differ";
  EXPECT_TRUE(time(1.3e-5, 1.3e-5, false).stopped_early);
}

TEST(TimingTest, OneSlowReadingOfAShortProgramDoesNotStopIt) {
  FakeDevice device;
  device.cost = [](size_t batch) { return batch == 1 ? 9e-4 : 1e-5; };
  ASSERT_OK_AND_ASSIGN(Timing timing,
                       TimeProgram({.number = 3, .early_stop_s = 5e-5}, device.Device()));
  EXPECT_FALSE(timing.stopped_early);
  EXPECT_THAT(timing.costs_s, ElementsAre(DoubleNear(1e-5, 1e-12)));
}

TEST(TimingTest, LongProgramThatHasRunIsNotWarmedUp) {
  FakeDevice device;
  device.call_s = 2;
  ASSERT_OK_AND_ASSIGN(Timing timing,
                       TimeProgram({.min_repeat_s = 0.1, .earlier_call_s = 2}, device.Device()));
  EXPECT_EQ(device.Calls(), 1);
  EXPECT_THAT(timing.costs_s, ElementsAre(2));
}

TEST(TimingTest, NothingStopsEarlyWithoutABestCost) {
  FakeDevice device;
  device.call_s = 5;
  ASSERT_OK_AND_ASSIGN(Timing timing, TimeProgram({.number = 2}, device.Device()));
  EXPECT_FALSE(timing.stopped_early);
}

TEST(TimingTest, FlushMeansOneCallPerReading) {
  FakeDevice device;
  device.call_s = 1e-5;
  ASSERT_OK_AND_ASSIGN(
      Timing timing,
      TimeProgram({.number = 7, .repeat = 4, .min_repeat_s = 0.1, .flush_cache = true},
                  device.Device()));
  EXPECT_THAT(timing.costs_s, SizeIs(4));
  EXPECT_EQ(device.flushes, 4);
  EXPECT_THAT(device.batches, ElementsAre(1, 1, 1, 1, 1));
}

TEST(TimingTest, PausesOnceWhateverTheRepeats) {
  FakeDevice device;
  device.call_s = 0.05;
  const TimingOptions options{
      .number = 1, .repeat = 3, .min_repeat_s = 0.1, .cooldown_s = 0.25, .budget_s = 0.6};
  ASSERT_OK_AND_ASSIGN(const Timing timing, TimeProgram(options, device.Device()));
  EXPECT_NEAR(device.slept_s, 0.25, 1e-9);
  EXPECT_THAT(timing.costs_s, SizeIs(3)) << "the pause is not taken from the budget";
}

// Asks for a reading of 2 ms, and further ones while the device would be idle.
TimingOptions IdleOptions() { return {.min_repeat_s = 2e-3, .idle_s = 0.05}; }

// Returns readings that differ by 10% and more, so that their median is not well known for long.
double Noisy(size_t batch) { return 1e-4 * (1 + 0.13 * static_cast<double>(batch * 7 % 11)); }

TEST(TimingTest, ReadsOnWhileNobodyWaits) {
  FakeDevice device;
  device.cost = Noisy;
  TimingDevice timing_device = device.Device();
  double first_end_s = 0;
  timing_device.is_wanted = [&] {
    if (first_end_s == 0) first_end_s = device.now_s;
    return false;
  };
  ASSERT_OK_AND_ASSIGN(const Timing timing, TimeProgram(IdleOptions(), timing_device));
  EXPECT_GT(timing.costs_s.size(), 10u);
  EXPECT_LE(device.now_s - first_end_s, 0.05 + 1e-9) << "never more than the limit";
  EXPECT_GT(device.now_s - first_end_s, 0.04);
  // All batches have the same size.
  EXPECT_EQ(std::set<int64_t>(device.batches.end() - 10, device.batches.end()).size(), 1u);
}

TEST(TimingTest, StopsAtOnceWhenSomebodyWaits) {
  for (const int free_readings : {0, 1, 4}) {
    FakeDevice device;
    device.cost = Noisy;
    TimingDevice timing_device = device.Device();
    int asked = 0;
    timing_device.is_wanted = [&] { return asked++ == free_readings; };
    ASSERT_OK_AND_ASSIGN(const Timing timing, TimeProgram(IdleOptions(), timing_device));
    EXPECT_THAT(timing.costs_s, SizeIs(static_cast<size_t>(1 + free_readings)));
    EXPECT_EQ(asked, free_readings + 1);
  }
}

TEST(TimingTest, AWellKnownMedianNeedsNoMoreReadings) {
  FakeDevice device;
  device.call_s = 1e-5;
  TimingDevice timing_device = device.Device();
  timing_device.is_wanted = [] { return false; };
  ASSERT_OK_AND_ASSIGN(Timing timing, TimeProgram(IdleOptions(), timing_device));
  EXPECT_THAT(timing.costs_s, SizeIs(5));
  // Timing also ends on a clock that stands still.
  device.call_s = 0;
  ASSERT_OK_AND_ASSIGN(timing, TimeProgram(IdleOptions(), timing_device));
  EXPECT_THAT(timing.costs_s, SizeIs(5));
}

TEST(TimingTest, IdleTimeIsNotForProgramsThatKeepOthersWaiting) {
  FakeDevice device;
  // A call takes 20 ms of 50 ms.
  device.call_s = 0.02;
  TimingDevice timing_device = device.Device();
  timing_device.is_wanted = [] { return false; };
  ASSERT_OK_AND_ASSIGN(Timing timing, TimeProgram(IdleOptions(), timing_device));
  EXPECT_THAT(timing.costs_s, SizeIs(1));
  // Idle time is also not for far slower programs, without being asked for, or beyond the trial's
  // own limit.
  device.call_s = 1e-3;
  TimingOptions options = IdleOptions();
  options.early_stop_s = 5e-4;
  ASSERT_OK_AND_ASSIGN(timing, TimeProgram(options, timing_device));
  EXPECT_TRUE(timing.stopped_early);
  EXPECT_THAT(timing.costs_s, SizeIs(1));
  options = IdleOptions();
  options.idle_s = 0;
  ASSERT_OK_AND_ASSIGN(timing, TimeProgram(options, timing_device));
  EXPECT_THAT(timing.costs_s, SizeIs(1));
  options = IdleOptions();
  options.budget_s = 0.008;
  const double start_s = device.now_s;
  ASSERT_OK_AND_ASSIGN(timing, TimeProgram(options, timing_device));
  EXPECT_LE(device.now_s - start_s, 0.008 + 1e-9);
  EXPECT_THAT(timing.costs_s, testing::Not(testing::IsEmpty()));
}

TEST(TimingTest, ClockThatStandsStillEnds) {
  FakeDevice device;
  device.call_s = 0;
  ASSERT_OK_AND_ASSIGN(Timing timing,
                       TimeProgram({.number = 1, .min_repeat_s = 0.1}, device.Device()));
  EXPECT_THAT(timing.costs_s, ElementsAre(0));
}

TEST(TimingTest, PassesErrorsOn) {
  FakeDevice fake;
  TimingDevice device = fake.Device();
  device.time_batch = [](int64_t) -> StatusOr<double> { return Internal("device lost"); };
  EXPECT_THAT(TimeProgram({}, device), StatusIs(StatusCode::kInternal, HasSubstr("device lost")));
}

}  // namespace
}  // namespace kiln::runner
