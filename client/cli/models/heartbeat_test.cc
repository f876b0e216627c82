#include "client/cli/models/heartbeat.h"

#include <gtest/gtest.h>

#include <semaphore>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"

namespace kiln::client {
namespace {

TEST(Heartbeat, BeatsUntilItsEnd) {
  FakeClock clock;
  std::vector<absl::Duration> beats;
  std::binary_semaphore said(0);
  {
    const Heartbeat heartbeat(
        absl::Minutes(1),
        [&](absl::Duration since) {
          beats.push_back(since);
          said.release();
        },
        clock);
    for (int beat = 0; beat < 3; ++beat) {
      clock.WaitForSleepers(1);
      clock.Advance(absl::Minutes(1));
      said.acquire();
    }
    clock.WaitForSleepers(1);
    clock.Advance(absl::Seconds(59));
  }
  EXPECT_EQ(beats,
            (std::vector<absl::Duration>{absl::Minutes(1), absl::Minutes(2), absl::Minutes(3)}));
}

TEST(Heartbeat, EndsBeforeItsFirstBeat) {
  FakeClock clock;
  {
    const Heartbeat heartbeat(absl::Hours(1), [](absl::Duration) { FAIL(); }, clock);
    clock.WaitForSleepers(1);
  }
  EXPECT_EQ(clock.MonotonicNanos(), FakeClock().MonotonicNanos()) << "no time has passed";
}

}  // namespace
}  // namespace kiln::client
