#include "base/clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "absl/time/clock.h"

namespace kiln {
namespace {

TEST(RealClockTest, WallTimeIsNowAndMonotonicTimeGrows) {
  Clock& clock = Clock::Real();
  EXPECT_LT(absl::AbsDuration(clock.Now() - absl::Now()), absl::Seconds(5));
  EXPECT_NEAR(clock.UnixSeconds(), absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()), 5);
  const int64_t before = clock.MonotonicNanos();
  clock.SleepFor(absl::Milliseconds(5));
  EXPECT_GE(clock.MonotonicNanos() - before, 5'000'000);
}

TEST(RealClockTest, WaitForTimesOutOrSeesTheCondition) {
  Clock& clock = Clock::Real();
  std::mutex mutex;
  std::condition_variable cv;
  bool ready = false;
  {
    std::unique_lock<std::mutex> lock(mutex);
    EXPECT_FALSE(clock.WaitFor(lock, cv, absl::Milliseconds(5), [&] { return ready; }));
  }
  std::jthread setter([&] {
    std::lock_guard<std::mutex> lock(mutex);
    ready = true;
    cv.notify_all();
  });
  std::unique_lock<std::mutex> lock(mutex);
  EXPECT_TRUE(clock.WaitFor(lock, cv, absl::InfiniteDuration(), [&] { return ready; }));
}

TEST(RealClockTest, ATimeoutInThePastReturnsAtOnce) {
  std::mutex mutex;
  std::condition_variable cv;
  std::unique_lock<std::mutex> lock(mutex);
  EXPECT_FALSE(Clock::Real().WaitFor(lock, cv, -absl::InfiniteDuration(), [] { return false; }));
  EXPECT_TRUE(Clock::Real().WaitFor(lock, cv, -absl::Seconds(1), [] { return true; }));
}

TEST(FakeClockTest, StandsStillUntilAdvanced) {
  FakeClock clock(absl::FromUnixSeconds(1000));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(1000));
  EXPECT_EQ(clock.MonotonicNanos(), 0);
  clock.Advance(absl::Seconds(2));
  EXPECT_EQ(clock.UnixSeconds(), 1002);
  EXPECT_EQ(clock.MonotonicSeconds(), 2);
}

TEST(FakeClockTest, WakesSleepersWhenTheirTimeHasCome) {
  FakeClock clock;
  std::atomic<int> awake = 0;
  std::jthread early([&] {
    clock.SleepFor(absl::Seconds(1));
    ++awake;
  });
  std::jthread late([&] {
    clock.SleepFor(absl::Seconds(10));
    ++awake;
  });
  clock.WaitForSleepers(2);
  clock.Advance(absl::Seconds(5));
  early.join();
  EXPECT_EQ(awake, 1);
  clock.Advance(absl::Seconds(5));
  late.join();
  EXPECT_EQ(awake, 2);
}

TEST(FakeClockTest, SleepOfNothingReturns) {
  FakeClock clock;
  clock.SleepFor(absl::ZeroDuration());
  clock.SleepFor(-absl::Seconds(1));
}

TEST(FakeClockTest, WaitForEndsByAdvanceOrByTheCondition) {
  FakeClock clock;
  std::mutex mutex;
  std::condition_variable cv;
  bool ready = false, by_time = true, by_condition = false;
  auto wait = [&] {
    std::unique_lock<std::mutex> lock(mutex);
    return clock.WaitFor(lock, cv, absl::Hours(1), [&] { return ready; });
  };
  std::jthread first([&] { by_time = wait(); });
  clock.WaitForSleepers(1);
  clock.Advance(absl::Hours(2));
  first.join();
  EXPECT_FALSE(by_time);

  std::jthread second([&] { by_condition = wait(); });
  clock.WaitForSleepers(1);
  {
    std::lock_guard<std::mutex> lock(mutex);
    ready = true;
    cv.notify_all();
  }
  second.join();
  EXPECT_TRUE(by_condition);
}

TEST(FakeClockTest, ManySleepersUnderManySmallAdvances) {
  FakeClock clock;
  constexpr int kSleepers = 16;
  std::atomic<int> awake = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kSleepers; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 5; ++k) clock.SleepFor(absl::Milliseconds(i + 1));
      ++awake;
    });
  }
  while (awake < kSleepers) {
    clock.Advance(absl::Milliseconds(1));
    std::this_thread::yield();
  }
  EXPECT_GE(clock.MonotonicNanos(), 5 * kSleepers * 1'000'000);
}

}  // namespace
}  // namespace kiln
