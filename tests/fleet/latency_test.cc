#include "tests/fleet/latency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/status_testing.h"

namespace kiln::fleet {
namespace {

using testing::HasSubstr;

TEST(LatencyTest, ZeroTakesNoTime) {
  Rng rng(1);
  const auto latency = Latency::Parse("0");
  ASSERT_OK(latency);
  EXPECT_EQ(latency->Draw(rng).count(), 0);
}

TEST(LatencyTest, DrawsGoThroughBothPercentiles) {
  Rng rng(1);
  const auto latency = Latency::Parse("0.1:0.4");
  ASSERT_OK(latency);
  std::vector<double> draws_s(20'001);
  for (double& draw_s : draws_s) draw_s = 1e-9 * static_cast<double>(latency->Draw(rng).count());
  std::ranges::sort(draws_s);
  EXPECT_NEAR(draws_s[10'000], 0.1, 0.005);
  EXPECT_NEAR(draws_s[18'000], 0.4, 0.03);
}

TEST(LatencyTest, RefusalsSayWhatIsExpected) {
  EXPECT_THAT(Latency::Parse("0.4:0.1"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("expected 0 < P50 <= P90")));
  EXPECT_THAT(Latency::Parse("/nonexistent"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("expected 0, P50:P90")));
}

}  // namespace
}  // namespace kiln::fleet
