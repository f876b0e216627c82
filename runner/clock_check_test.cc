#include "runner/clock_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace kiln::runner {
namespace {

TEST(JudgeClockTest, NearTimesFit) {
  EXPECT_EQ(JudgeClock({.told_s = 30e-3, .outside_s = 31e-3}), ClockVerdict::kFits);
  EXPECT_EQ(JudgeClock({.told_s = 0, .outside_s = 4e-3}), ClockVerdict::kFits) << "too short";
}

// Without the system's counts nothing is refused.
TEST(JudgeClockTest, WhereTheSystemTellsNothingTheOtherClockCounts) {
  EXPECT_EQ(JudgeClock({.told_s = 1e-3, .outside_s = 60e-3}), ClockVerdict::kDiffers);
}

TEST(JudgeClockTest, AThreadThatComputedLongerThanWasToldIsEvidence) {
  EXPECT_EQ(JudgeClock({.told_s = 12e-3, .outside_s = 60e-3, .cores = CoreUse{60e-3, 0}}),
            ClockVerdict::kForged);
  // The load of a machine hides nothing: the thread computed as long.
  EXPECT_EQ(JudgeClock({.told_s = 12e-3, .outside_s = 2.0, .cores = CoreUse{60e-3, 1.9}}),
            ClockVerdict::kForged);
  // A program that sleeps computes nothing.
  EXPECT_EQ(JudgeClock({.told_s = 12e-3, .outside_s = 60e-3, .cores = CoreUse{1e-3, 0}}),
            ClockVerdict::kDiffers);
}

TEST(JudgeClockTest, TimeInWhichThreadsWaitedForACoreFits) {
  EXPECT_EQ(JudgeClock({.told_s = 30e-3, .outside_s = 90e-3, .cores = CoreUse{25e-3, 60e-3}}),
            ClockVerdict::kFits);
  EXPECT_EQ(JudgeClock({.told_s = 30e-3, .outside_s = 90e-3, .cores = CoreUse{25e-3, 10e-3}}),
            ClockVerdict::kDiffers);
}

// On a machine whose cores are wanted by many threads, an honest process computes for a while, has
// no core for a while, and tells the time of that. Before and after its calls its threads and the
// asking thread wait too, and spin for up to a millisecond each time.
TEST(JudgeClockTest, NoLoadMakesAnHonestProgramAForger) {
  std::mt19937_64 random(1);
  for (const double mean_wait_s : {1e-4, 3e-3, 45 * 3e-3, 1.0}) {
    std::exponential_distribution<double> wait_s(1 / mean_wait_s);
    std::uniform_real_distribution<double> work_s(1e-4, 0.2), spin_s(0, 1e-3);
    int fit = 0;
    for (int i = 0; i < 10'000; ++i) {
      const double work = work_s(random), within = wait_s(random), spin = spin_s(random);
      const double before = wait_s(random), after = wait_s(random);
      // The system's counts lack what it did not notice.
      const double counted = 0.9 * (before + after) + within;
      const ClockReading reading{.told_s = work + within,
                                 .outside_s = before + spin + work + within + after,
                                 .cores = CoreUse{work + spin, counted}};
      const ClockVerdict verdict = JudgeClock(reading);
      ASSERT_NE(verdict, ClockVerdict::kForged) << i << " " << mean_wait_s;
      fit += verdict == ClockVerdict::kFits ? 1 : 0;
    }
    EXPECT_GT(fit, 5'000) << mean_wait_s;
  }
}

}  // namespace
}  // namespace kiln::runner
