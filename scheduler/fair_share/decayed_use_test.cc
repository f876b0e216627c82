#include "scheduler/fair_share/decayed_use.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace kiln::scheduler {
namespace {

constexpr double kHalfLife_s = 1'000;

TEST(DecayedUse, ASecondCountsHalfAfterAHalfLife) {
  DecayedUse use(kHalfLife_s);
  use.Advance(10, 1);
  const double after = use.device_s();
  EXPECT_NEAR(after, 10, 0.05);
  use.Advance(10 + kHalfLife_s, 0);
  EXPECT_NEAR(use.device_s(), after / 2, 1e-9);
  use.Advance(10 + 3 * kHalfLife_s, 0);
  EXPECT_NEAR(use.device_s(), after / 8, 1e-9);
}

TEST(DecayedUse, DevicesInUseCountAsTimeGoesBy) {
  DecayedUse use(kHalfLife_s);
  use.Advance(1, 4);
  EXPECT_NEAR(use.device_s(), 4, 0.01);
  use.Advance(2, 4);
  EXPECT_NEAR(use.device_s(), 8, 0.02);
}

TEST(DecayedUse, AUseWithoutEndComesToALimit) {
  DecayedUse use(kHalfLife_s);
  use.Advance(100 * kHalfLife_s, 2);
  EXPECT_NEAR(use.device_s(), 2 * kHalfLife_s / std::log(2.0), 1e-6);
}

TEST(DecayedUse, ARestoredValueDecaysFromItsTime) {
  DecayedUse use(kHalfLife_s);
  use.Restore(80, -2 * kHalfLife_s);
  use.Advance(0, 0);
  EXPECT_NEAR(use.device_s(), 20, 1e-9);
}

TEST(DecayedUse, TimeThatRunsBackwardsStandsStill) {
  DecayedUse use(kHalfLife_s);
  use.Advance(10, 1);
  const double before = use.device_s();
  use.Advance(5, 1);
  EXPECT_EQ(use.device_s(), before);
}

// The model sums the decay of each millisecond.
TEST(DecayedUse, AgreesWithASumOverMilliseconds) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 rng(seed);
    DecayedUse use(/*half_life_s=*/2);
    const double step = std::exp2(-1e-3 / 2);
    double model = 0, now_s = 0;
    for (int span = 0; span < 20; ++span) {
      const int devices = static_cast<int>(rng() % 4);
      const int ms = static_cast<int>(rng() % 700);
      for (int i = 0; i < ms; ++i) model = model * step + devices * 1e-3;
      now_s += 1e-3 * ms;
      use.Advance(now_s, devices);
      ASSERT_NEAR(use.device_s(), model, 2e-3 * (1 + model)) << "span " << span;
    }
  }
}

}  // namespace
}  // namespace kiln::scheduler
