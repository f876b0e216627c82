#include "client/farm/process_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <vector>

#include "base/status_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Moves on by what its sleepers sleep.
class SelfMovingClock : public FakeClock {
 public:
  void SleepFor(absl::Duration duration) override { Advance(duration); }
};

class ProcessEndTest : public testing::Test {
 protected:
  // The process ends at `end_s`, or `after_kill_s` after it was killed.
  Status Wait(double end_s, double after_kill_s) {
    const double start_s = clock_.MonotonicSeconds();
    const auto now_s = [this, start_s] { return clock_.MonotonicSeconds() - start_s; };
    double at_s = end_s;
    ProcessCalls calls;
    calls.is_running = [&](const ProcessIdentity&) { return now_s() < at_s; };
    calls.signal = [&](const ProcessIdentity& process, int signal) {
      EXPECT_EQ(process, process_.process);
      signals_.push_back(signal);
      at_s = now_s() + after_kill_s;
      return OkStatus();
    };
    const Status ended = WaitForEnd(process_, clock_, calls);
    took_s_ = now_s();
    return ended;
  }

  const FarmProcess process_ = {
      .name = "runner cpu", .process = {4711, 17, "boot"}, .log = "runner-cpu.log"};
  SelfMovingClock clock_;
  std::vector<int> signals_;
  double took_s_ = 0;
};

TEST_F(ProcessEndTest, AProcessThatEndsGetsNoSignal) {
  EXPECT_OK(Wait(0, 0));
  EXPECT_OK(Wait(9.5, 0));
  EXPECT_GE(took_s_, 9.5);
  EXPECT_THAT(signals_, ElementsAre());
}

TEST_F(ProcessEndTest, AProcessThatHangsIsKilled) {
  EXPECT_OK(Wait(1e9, 0.5));
  EXPECT_THAT(signals_, ElementsAre(SIGKILL));
  EXPECT_LT(took_s_, 11);
}

TEST_F(ProcessEndTest, AProcessThatStaysIsNamed) {
  EXPECT_THAT(Wait(1e9, 1e9),
              StatusIs(StatusCode::kUnavailable,
                       AllOf(HasSubstr("the runner cpu of the farm, process 4711, is still there"),
                             HasSubstr("`ps -o stat,wchan -p 4711`"),
                             HasSubstr("Give `kiln farm down` again"))));
  EXPECT_THAT(signals_, ElementsAre(SIGKILL));
  EXPECT_LT(took_s_, 21);
}

}  // namespace
}  // namespace kiln::client
