#include "client/cli/heartbeat.h"

#include <gtest/gtest.h>

#include <atomic>

#include "absl/time/clock.h"

namespace kiln::client {
namespace {

TEST(Heartbeat, BeatsUntilItsEnd) {
  std::atomic<int> beats{0};
  {
    const Heartbeat heartbeat(absl::Milliseconds(5), [&](absl::Duration since) {
      const int beat = ++beats;
      EXPECT_EQ(since, beat * absl::Milliseconds(5));
    });
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    while (beats.load() < 3 && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
  }
  const int at_the_end = beats.load();
  EXPECT_GE(at_the_end, 3);
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(beats.load(), at_the_end);
}

TEST(Heartbeat, EndsBeforeItsFirstBeat) {
  const absl::Time start = absl::Now();
  {
    const Heartbeat heartbeat(absl::Hours(1), [](absl::Duration) { FAIL(); });
  }
  EXPECT_LT(absl::Now() - start, absl::Minutes(1));
}

}  // namespace
}  // namespace kiln::client
