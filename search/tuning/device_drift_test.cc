#include "search/tuning/device_drift.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/numbers/rng.h"
#include "search/tuning/final_race.h"

namespace kiln::search {
namespace {

// A device whose speed wanders (an Ornstein-Uhlenbeck process with the standard deviation `drift`,
// which forgets after `memory_s`), and whose readings of 30 ms scatter by 1%.
class WanderingDevice {
 public:
  WanderingDevice(uint64_t seed, double drift, double memory_s)
      : drift_(drift), memory_s_(memory_s), rng_(seed), level_(drift * Normal()) {}

  void Wait(double seconds) {
    const double kept = std::exp(-seconds / memory_s_);
    level_ = kept * level_ + std::sqrt(1 - kept * kept) * drift_ * Normal();
  }
  // `length` is in units of a trial's reading.
  double Read(double true_s, double length) {
    Wait(0.05 * length);
    return true_s * std::exp(level_ + 0.01 * Normal() / std::sqrt(length));
  }

 private:
  double Normal() {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += UniformReal(rng_);
    return sum - 6;
  }
  const double drift_, memory_s_;
  Rng rng_;
  double level_;
};

struct Claim {
  double cost_s = 0, turns_s = 0, all_s = 0;  // half widths: of the turns, with drift
  double later_s = 0;                         // a later timing, minutes after
};

// Runs a job of 80 trials, one a second, then its final race, and one to five minutes later a long
// reading of the winner.
Claim RunJob(uint64_t seed, double drift) {
  WanderingDevice device(seed, drift, 60);
  Rng rng(seed ^ 1);
  std::vector<double> truth, first;
  for (int i = 0; i < 80; ++i) {
    truth.push_back(1 + 0.5 * UniformReal(rng));
    device.Wait(1);
    first.push_back(device.Read(truth.back(), 1));
  }
  const std::vector<int> finalists = ChooseFinalists(first, 8);
  FinalRace race(static_cast<int>(finalists.size()), {});
  for (auto round = race.NextRound(); !round.empty(); round = race.NextRound()) {
    for (const int i : round) {
      const double true_s = truth[finalists[i]];
      race.Add(i, std::vector{device.Read(true_s, 3), device.Read(true_s, 3)});
    }
  }
  DeviceDrift seen;
  for (size_t i = 0; i < finalists.size(); ++i) {
    seen.Add(first[finalists[i]], race.values_s(static_cast<int>(i)));
  }
  const MedianCost won = race.median(*race.best());
  Claim claim{won.cost_s, won.confidence_s, 0, 0};
  claim.all_s = WithDrift(won.cost_s, won.confidence_s, std::max(seen.Share(), race.drift_share()));
  device.Wait(60 + 240 * UniformReal(rng));
  claim.later_s = device.Read(truth[finalists[*race.best()]], 30);
  return claim;
}

struct Kept {
  double turns = 0, all = 0;  // shares of claims that held
  double width = 0;           // median of the half widths with drift, relative
};

Kept KeptClaims(double drift) {
  constexpr int kRuns = 500;
  Kept kept;
  std::vector<double> widths;
  for (uint64_t run = 0; run < kRuns; ++run) {
    const Claim claim = RunJob(run, drift);
    const double off_s = std::abs(claim.later_s - claim.cost_s);
    kept.turns += 1.0 / kRuns * (off_s <= claim.turns_s);
    kept.all += 1.0 / kRuns * (off_s <= claim.all_s);
    widths.push_back(claim.all_s / claim.cost_s);
  }
  std::ranges::nth_element(widths, widths.begin() + kRuns / 2);
  kept.width = widths[kRuns / 2];
  printf("drift %.1f%%: %.0f%% of the turns' intervals hold, %.0f%% with drift, of +-%.1f%%\n",
         100 * drift, 100 * kept.turns, 100 * kept.all, 100 * kept.width);
  return kept;
}

TEST(DeviceDrift, WhatIsClaimedHoldsMinutesLaterOnADeviceThatDrifts) {
  for (const double drift : {0.02, 0.05}) {
    const Kept kept = KeptClaims(drift);
    EXPECT_LT(kept.turns, 0.4);
    EXPECT_GT(kept.all, 0.8);
    EXPECT_LT(kept.width, 6 * drift);
  }
}

TEST(DeviceDrift, OnASteadyDeviceLittleIsAdded) {
  const Kept kept = KeptClaims(0);
  EXPECT_GT(kept.all, 0.9);
  EXPECT_LT(kept.width, 0.04);
}

TEST(DeviceDrift, WithoutReadingsNothingIsKnown) {
  DeviceDrift drift;
  EXPECT_EQ(drift.Share(), 0);
  drift.Add(1, {});
  EXPECT_EQ(drift.Share(), 0);
  drift.Add(1, std::vector{1.1, 1.1});
  EXPECT_GT(drift.Share(), 0.1);
  EXPECT_EQ(WithDrift(2, 0.3, 0.2), 0.5);
}

}  // namespace
}  // namespace kiln::search
