#include "runner/hours_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "absl/time/civil_time.h"
#include "base/status_testing.h"

namespace kiln::runner {
namespace {

constexpr char kHours[] = "mon-fri 20:00-06:00, sat-sun";

absl::Time At(int day, int hour, int minute = 0) {
  return absl::FromCivil(absl::CivilMinute(2026, 11, day, hour, minute), absl::UTCTimeZone());
}

// Waits in real time until the modes have what a test expects.
class HoursWatchTest : public testing::Test {
 protected:
  Hours Parsed(const char* zone = "UTC") { return *Hours::Parse(kHours, *FindZone(zone)); }

  bool Becomes(v1::WorkerMode mode) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20),
                             [&] { return modes_.Effective().mode == mode; });
  }

  WorkerModes modes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  WorkerModes::Subscription subscription_ = modes_.Subscribe([this] {
    std::lock_guard lock(mutex_);
    changed_.notify_all();
  });
};

TEST_F(HoursWatchTest, TheModeFollowsTheHours) {
  FakeClock clock(At(27, 19, 59));  // a Friday
  {
    const HoursWatch watch(Parsed(), modes_, clock);
    EXPECT_EQ(modes_.Effective().mode, v1::WORKER_PAUSED) << "from the start";
    EXPECT_THAT(modes_.Effective().sentence,
                testing::StartsWith("outside of its hours mon-fri 20:00-06:00, sat-sun"));
    EXPECT_THAT(modes_.Effective().sentence, testing::EndsWith(", until Fri 20:00"));
    clock.WaitForSleepers(1);
    clock.Advance(absl::Seconds(59));
    clock.Advance(absl::Seconds(1));
    EXPECT_TRUE(Becomes(v1::WORKER_SERVES));
    clock.WaitForSleepers(1);
    // A look in each minute, or a clock that is set forward: both come to Monday.
    clock.Advance(absl::Hours(52));
    EXPECT_TRUE(Becomes(v1::WORKER_PAUSED));
    EXPECT_THAT(modes_.Effective().sentence, testing::EndsWith(", until Mon 20:00"));
  }
  EXPECT_EQ(modes_.Effective().mode, v1::WORKER_PAUSED) << "a watch that ends changes nothing";
}

TEST_F(HoursWatchTest, AnOperatorDoesNotOverrideTheHours) {
  FakeClock clock(At(30, 12));
  const HoursWatch watch(Parsed(), modes_, clock);
  modes_.Ask(v1::WORKER_PAUSED, "ada");
  EXPECT_EQ(modes_.Effective().sentence, "paused by ada");
  modes_.Ask(v1::WORKER_SERVES, "ada");
  EXPECT_EQ(modes_.Effective().mode, v1::WORKER_PAUSED);
  EXPECT_THAT(modes_.Effective().sentence, testing::StartsWith("outside of its hours"));
}

TEST_F(HoursWatchTest, TheSentenceHasTheTimeOfItsZone) {
  EXPECT_EQ(OutsideSentence(Parsed("Europe/Berlin"), At(30, 12)),
            "outside of its hours mon-fri 20:00-06:00, sat-sun (Europe/Berlin), until Mon 20:00");
  EXPECT_EQ(Parsed("Europe/Berlin").NextChange(At(30, 12)), At(30, 19));
}

}  // namespace
}  // namespace kiln::runner
