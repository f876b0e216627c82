#include "runner/device_share.h"

#include <atomic>
#include <thread>

#include "base/status_testing.h"

namespace kiln::runner {
namespace {

using testing::HasSubstr;

bool Never() { return false; }

class DeviceShareTest : public testing::Test {
 protected:
  // Uses the device for so long; it has rested.
  void UseFor(absl::Duration duration) {
    DeviceShare::Use use(&share_);
    ASSERT_OK(use.Begin(Never));
    clock_.Advance(duration);
  }
  // Returns the time for which a trial waits that comes now. The clock goes on by as much.
  absl::Duration Wait() {
    const absl::Time start = clock_.Now();
    std::atomic<bool> has_begun = false;
    std::thread trial([&] {
      DeviceShare::Use use(&share_);
      EXPECT_OK(use.Begin(Never));
      has_begun = true;
    });
    while (!has_begun) {
      clock_.Advance(absl::Milliseconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    trial.join();
    return clock_.Now() - start;
  }

  FakeClock clock_;
  DeviceShare share_{0.25, clock_};
};

TEST_F(DeviceShareTest, ADeviceRestsThreeTimesAsLongAsATrialOfAQuarter) {
  UseFor(absl::Milliseconds(100));
  clock_.Advance(absl::Milliseconds(299));
  std::atomic<bool> has_begun = false;
  std::thread trial([&] {
    DeviceShare::Use use(&share_);
    EXPECT_OK(use.Begin(Never));
    has_begun = true;
  });
  clock_.WaitForSleepers(1);
  EXPECT_FALSE(has_begun);
  clock_.Advance(absl::Milliseconds(1));
  trial.join();
  EXPECT_TRUE(has_begun);
}

TEST_F(DeviceShareTest, AFirstTrialAndOneAfterARestDoNotWait) {
  UseFor(absl::Seconds(1));
  clock_.Advance(absl::Seconds(3));
  UseFor(absl::Seconds(1));
  clock_.Advance(absl::Minutes(10));
  UseFor(absl::Milliseconds(1));
}

// Trials of different lengths, each as soon as it may: they have their share of a minute.
TEST_F(DeviceShareTest, TheShareOfAMinuteIsKept) {
  const absl::Time start = clock_.Now();
  absl::Duration used;
  for (int i = 0; clock_.Now() < start + absl::Minutes(1); ++i) {
    const absl::Duration length = absl::Milliseconds(20 + 100 * (i % 5));
    UseFor(length);
    used += length;
    clock_.Advance(3 * length);
    EXPECT_LE(used, 0.25 * (clock_.Now() - start));
  }
  EXPECT_GE(used, absl::Seconds(14));
}

TEST_F(DeviceShareTest, AWaitEndsWithTheRest) {
  UseFor(absl::Milliseconds(20));
  EXPECT_GE(Wait(), absl::Milliseconds(60));
}

TEST_F(DeviceShareTest, ALongRestIsNotWaitedFor) {
  UseFor(absl::Seconds(20));
  DeviceShare::Use use(&share_);
  EXPECT_THAT(use.Begin(Never),
              StatusIs(StatusCode::kResourceExhausted,
                       HasSubstr("this runner takes at most 25% of the device's time, and the "
                                 "device rests for 60 s more")));
  clock_.Advance(absl::Seconds(60));
  EXPECT_OK(use.Begin(Never));
}

TEST_F(DeviceShareTest, AWaitIsCancelled) {
  UseFor(absl::Seconds(1));
  std::atomic<bool> cancelled = false;
  std::thread trial([&] {
    DeviceShare::Use use(&share_);
    EXPECT_THAT(use.Begin([&] { return cancelled.load(); }),
                StatusIs(StatusCode::kCancelled, HasSubstr("rests")));
  });
  clock_.WaitForSleepers(1);
  cancelled = true;
  clock_.Advance(absl::Milliseconds(50));
  trial.join();
  // A trial that did not begin has used nothing.
  clock_.Advance(absl::Milliseconds(2'950));
  UseFor(absl::Seconds(1));
}

TEST_F(DeviceShareTest, WithoutAShareNothingWaits) {
  for (int i = 0; i < 3; ++i) {
    DeviceShare::Use use(nullptr);
    EXPECT_OK(use.Begin(Never));
  }
}

TEST(ParseShareTest, APercentage) {
  EXPECT_EQ(*ParseShare("25%"), 0.25);
  EXPECT_EQ(*ParseShare("100%"), 1);
  EXPECT_EQ(*ParseShare("2.5%"), 0.025);
  for (const char* bad : {"", "%", "25", "0.25", "0%", "0.9%", "101%", "-5%", "nan%", "25%%",
                          " 25%", "25 %", "1e400%"}) {
    EXPECT_THAT(ParseShare(bad), StatusIs(StatusCode::kInvalidArgument, HasSubstr("as in 25%")))
        << bad;
  }
}

TEST(ParseShareTest, TheSentenceHasThePercentage) {
  FakeClock clock;
  EXPECT_EQ(DeviceShare(0.25, clock).Sentence(), "takes at most 25% of the device's time");
  EXPECT_EQ(DeviceShare(0.025, clock).Sentence(), "takes at most 2.5% of the device's time");
}

}  // namespace
}  // namespace kiln::runner
