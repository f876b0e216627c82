#include "scheduler/service/concurrency_limiter.h"

#include <atomic>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "base/status_testing.h"

namespace kiln::scheduler {
namespace {

using testing::HasSubstr;

bool Never() { return false; }

TEST(ConcurrencyLimiterTest, OthersWaitForTheirTurn) {
  ConcurrencyLimiter calls({.what = "test", .at_work = 2, .in_line = 100});
  std::atomic<int> at_work{0}, most{0}, done{0};
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < 12; ++i) {
      callers.emplace_back([&] {
        EXPECT_OK(calls.Do(Never, [&](const std::stop_token&) {
          const int now = ++at_work;
          for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
          }
          absl::SleepFor(absl::Milliseconds(10));
          --at_work;
          ++done;
          return OkStatus();
        }));
      });
    }
  }
  EXPECT_EQ(done, 12);
  EXPECT_EQ(most, 2);
}

TEST(ConcurrencyLimiterTest, ALineThatIsFullIsSaid) {
  ConcurrencyLimiter calls({.what = "test of a line", .at_work = 1, .in_line = 0});
  EXPECT_OK(calls.Do(Never, [&](const std::stop_token&) {
    EXPECT_THAT(
        calls.Do(Never, [](const std::stop_token&) { return OkStatus(); }),
        StatusIs(StatusCode::kResourceExhausted,
                 "1 calls for a test of a line are running and 0 wait, no more are accepted; "
                 "try again"));
    return OkStatus();
  }));
}

TEST(ConcurrencyLimiterTest, ACallerThatDisconnectsLeavesTheLine) {
  ConcurrencyLimiter calls({.what = "test", .at_work = 1, .in_line = 1});
  EXPECT_OK(calls.Do(Never, [&](const std::stop_token&) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_THAT(calls.Do([] { return true; }, [](const std::stop_token&) { return OkStatus(); }),
                  StatusIs(StatusCode::kCancelled, testing::_));
    }
    return OkStatus();
  }));
}

TEST(ConcurrencyLimiterTest, WorkEndsAtItsLimitAndSaysSo) {
  ConcurrencyLimiter calls({.what = "choice", .longest = absl::Milliseconds(200)});
  EXPECT_THAT(calls.Do(Never,
                       [](const std::stop_token& stop) {
                         while (!stop.stop_requested()) absl::SleepFor(absl::Milliseconds(5));
                         return Cancelled("stopped");
                       }),
              StatusIs(StatusCode::kDeadlineExceeded, HasSubstr("which is the limit")));
  EXPECT_OK(calls.Do(Never, [](const std::stop_token&) { return OkStatus(); }));
}

}  // namespace
}  // namespace kiln::scheduler
