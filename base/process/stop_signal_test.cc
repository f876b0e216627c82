#include "base/process/stop_signal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "base/clock.h"

namespace kiln {
namespace {

TEST(StopSignalTest, WaitsForEachOfTheSignals) {
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) {
    StopSignal stop;
    // The signal comes from another thread, because a real one may be delivered to any thread.
    std::jthread sender([&] {
      Clock::Real().SleepFor(absl::Milliseconds(20));
      kill(getpid(), signal);
    });
    EXPECT_EQ(stop.Wait(), signal);
  }
}

TEST(StopSignalTest, ASignalBeforeTheWaitIsNotLost) {
  StopSignal stop;
  kill(getpid(), SIGTERM);
  EXPECT_EQ(stop.WaitFor(absl::Seconds(10)), SIGTERM);
}

TEST(StopSignalTest, UnderNohupATerminalMayClose) {
  signal(SIGHUP, SIG_IGN);
  {
    StopSignal stop;
    kill(getpid(), SIGHUP);
    EXPECT_EQ(stop.WaitFor(absl::Milliseconds(20)), std::nullopt);
  }
  signal(SIGHUP, SIG_DFL);
}

TEST(StopSignalTest, TimesOut) {
  StopSignal stop;
  EXPECT_EQ(stop.WaitFor(absl::Milliseconds(10)), std::nullopt);
  EXPECT_EQ(stop.WaitFor(absl::ZeroDuration()), std::nullopt);
}

TEST(StopSignalTest, TriggerEndsTheWaitForGood) {
  StopSignal stop;
  std::jthread other([&] {
    Clock::Real().SleepFor(absl::Milliseconds(20));
    stop.Trigger();
  });
  EXPECT_EQ(stop.Wait(), 0);
  EXPECT_EQ(stop.Wait(), 0);
}

TEST(StopSignalDeathTest, TheSecondSignalKills) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        StopSignal stop;
        kill(getpid(), SIGINT);
        stop.Wait();
        kill(getpid(), SIGINT);
        pause();
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(StopSignalTest, ABrokenPipeDoesNotKill) {
  StopSignal stop;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  EXPECT_EQ(write(ends[1], "x", 1), -1);
  close(ends[1]);
}

}  // namespace
}  // namespace kiln
