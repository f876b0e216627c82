#include "rpc/retry_pause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace kiln {
namespace {

using testing::ElementsAre;

std::vector<int64_t> FivePausesMs(RetryPause& pause) {
  std::vector<int64_t> all;
  for (int i = 0; i < 5; ++i) all.push_back(absl::ToInt64Milliseconds(pause.Next()));
  return all;
}

TEST(RetryPauseTest, PausesGrowToASecondAndBeginAnew) {
  RetryPause pause([] { return 0.5; });
  EXPECT_THAT(FivePausesMs(pause), ElementsAre(75, 150, 300, 600, 750));
  pause.Reset();
  EXPECT_THAT(FivePausesMs(pause), ElementsAre(75, 150, 300, 600, 750));
}

TEST(RetryPauseTest, APauseIsBetweenAHalfAndTheWhole) {
  RetryPause shortest([] { return 0.0; });
  EXPECT_THAT(FivePausesMs(shortest), ElementsAre(50, 100, 200, 400, 500));
  RetryPause longest([] { return 0.9999; });
  EXPECT_THAT(FivePausesMs(longest), ElementsAre(99, 199, 399, 799, 999));
}

TEST(RetryPauseTest, TheKernelsNumbersDiffer) {
  const Random random = RealRandom();
  std::set<double> seen;
  for (int i = 0; i < 100; ++i) {
    const double number = random();
    EXPECT_GE(number, 0);
    EXPECT_LT(number, 1);
    seen.insert(number);
  }
  EXPECT_GT(seen.size(), 90u);
}

}  // namespace
}  // namespace kiln
