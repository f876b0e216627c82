#include "client/farm/restart_policy.h"

#include <gtest/gtest.h>

namespace kiln::client {
namespace {

constexpr RestartPolicy::Limits kLimits = {.first_pause = absl::Seconds(1),
                                           .longest_pause = absl::Seconds(5),
                                           .long_life = absl::Seconds(60),
                                           .most_deaths = 5};

TEST(RestartPolicy, PausesDoubleUpToTheLongestAndThenEnd) {
  RestartPolicy policy(kLimits);
  for (const int pause_s : {1, 2, 4, 5, 5}) {
    EXPECT_EQ(policy.Died(absl::Seconds(3)), absl::Seconds(pause_s));
  }
  EXPECT_EQ(policy.Died(absl::Seconds(3)), std::nullopt);
}

TEST(RestartPolicy, ALongLifeForgivesEarlierDeaths) {
  RestartPolicy policy(kLimits);
  for (int i = 0; i < 4; ++i) policy.Died(absl::ZeroDuration());
  EXPECT_EQ(policy.Died(absl::Seconds(60)), absl::Seconds(1));
  EXPECT_EQ(policy.Died(absl::Seconds(59)), absl::Seconds(2));
}

}  // namespace
}  // namespace kiln::client
