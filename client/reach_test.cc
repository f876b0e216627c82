#include "client/reach.h"

#include <gtest/gtest.h>

#include <mutex>

#include "base/status_testing.h"

namespace kiln::client {
namespace {

// Time passes only when somebody sleeps.
class SleepingClock : public Clock {
 public:
  absl::Time Now() override { return now_; }
  int64_t MonotonicNanos() override { return absl::ToUnixNanos(now_); }
  void SleepFor(absl::Duration duration) override { now_ += duration; }
  bool WaitFor(std::unique_lock<std::mutex>&, std::condition_variable&, absl::Duration timeout,
               const std::function<bool()>& done) override {
    now_ += timeout;
    return done();
  }

 private:
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
};

Status Broken() { return Unavailable("last error: UNKNOWN: tcp handshaker shutdown"); }

struct Reached {
  Status status;
  int calls = 0;
};

// The first `failures` calls fail with `failure`, later calls succeed.
Reached ReachAfter(int failures, const Status& failure) {
  SleepingClock clock;
  Reached reached;
  reached.status = Reach([&] { return reached.calls++ < failures ? failure : OkStatus(); }, clock);
  return reached;
}

TEST(ReachTest, AnAnswerIsTakenAtOnce) {
  const Reached reached = ReachAfter(0, Broken());
  EXPECT_OK(reached.status);
  EXPECT_EQ(reached.calls, 1);
}

TEST(ReachTest, AConnectionThatBreaksIsMadeAgain) {
  const Reached reached = ReachAfter(1, Broken());
  EXPECT_OK(reached.status);
  EXPECT_EQ(reached.calls, 2);
}

TEST(ReachTest, ARefusedConnectionIsFinal) {
  const Reached reached = ReachAfter(
      1, Unavailable("last error: Failed to connect to remote host: Connection refused"));
  EXPECT_THAT(reached.status, StatusIs(StatusCode::kUnavailable, testing::HasSubstr("refused")));
  EXPECT_EQ(reached.calls, 1);
}

TEST(ReachTest, AnAnswerThatIsAnErrorIsFinal) {
  const Reached reached = ReachAfter(1, FailedPrecondition("the secret is another"));
  EXPECT_EQ(reached.status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(reached.calls, 1);
}

TEST(ReachTest, NotForEver) {
  const Reached reached = ReachAfter(1'000'000, Broken());
  EXPECT_EQ(reached.status.code(), StatusCode::kUnavailable);
  EXPECT_GE(reached.calls, 5);
  EXPECT_LE(reached.calls, 50);
}

}  // namespace
}  // namespace kiln::client
