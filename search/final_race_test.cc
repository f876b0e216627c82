#include "search/final_race.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"

namespace kiln::search {
namespace {

TEST(FinalRace, MedianAndItsConfidence) {
  const std::vector<double> costs_s = {1.00, 1.02, 0.98, 1.01, 9.00};
  const MedianCost m = MedianOf(costs_s);
  EXPECT_EQ(m.cost_s, 1.01);
  // Deviations 0.01, 0.01, 0.03, 0, 7.99: median 0.01; t(4) = 2.776 (2.81 here).
  // 0.01 * 1.4826 * 1.2533 / sqrt(5) * 2.81 = 0.02335
  EXPECT_NEAR(m.confidence_s, 0.02335, 2e-5);
  const std::vector<double> two = {2, 4};
  EXPECT_EQ(MedianOf(two).cost_s, 3);
  EXPECT_EQ(MedianOf(two).confidence_s, 0);
  EXPECT_EQ(MedianOf({}).cost_s, 0);
}

TEST(FinalRace, FinalistsAreTheBestOnes) {
  const std::vector<double> costs_s = {3.0, 0, 1.2, 1.0, 1.1, 1.24, 1.26};
  EXPECT_EQ(ChooseFinalists(costs_s, 8), (std::vector<int>{3, 4, 2, 5}));
  EXPECT_EQ(ChooseFinalists(costs_s, 2), (std::vector<int>{3, 4}));
  EXPECT_TRUE(ChooseFinalists(costs_s, 0).empty());
  const std::vector<double> failed = {0, 0};
  EXPECT_TRUE(ChooseFinalists(failed, 8).empty());
}

TEST(FinalRace, RoundsAlternateAndFailuresLeave) {
  FinalRace race(3, {.rounds = 3, .rounds_for_all = 2});
  EXPECT_EQ(race.NextRound(), (std::vector<int>{0, 1, 2}));
  const std::vector<double> same = {1, 1, 1};
  for (const int i : {0, 1, 2}) race.Add(i, same);
  EXPECT_EQ(race.NextRound(), (std::vector<int>{2, 1, 0}));
  race.Disqualify(1);
  EXPECT_EQ(race.NextRound(), (std::vector<int>{0, 2}));
  EXPECT_TRUE(race.NextRound().empty());
  EXPECT_EQ(race.best(), 0);
  EXPECT_TRUE(race.costs_s(1).empty());
}

TEST(FinalRace, HopelessOnesLeaveAndEndIt) {
  FinalRace race(2, {.rounds = 9, .rounds_for_all = 2});
  const std::vector<double> quick = {1.00, 1.01, 0.99}, slow = {1.2, 1.21, 1.19};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(race.NextRound().size(), 2u);
    race.Add(0, slow);
    race.Add(1, quick);
  }
  EXPECT_TRUE(race.NextRound().empty());
  EXPECT_EQ(race.best(), 1);
}

// A device with known noise: 2% to either side, slow drift of 3% over the session, and in one of
// ten readings a disturbance of up to 30%. Candidates are 1% apart. Both ways have the same number
// of readings in all.
class NoisyDevice {
 public:
  explicit NoisyDevice(uint64_t seed) : rng_(seed) {}
  double Read(double true_cost) {
    ++readings;
    double factor = 1 + 0.03 * std::sin(0.02 * readings) + 0.02 * Normal();
    if (Chance(rng_, 0.1)) factor += 0.3 * UniformReal(rng_);
    return true_cost * factor;
  }
  int readings = 0;

 private:
  double Normal() {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += UniformReal(rng_);
    return sum - 6;
  }
  Rng rng_;
};

TEST(FinalRace, FindsTheBestMoreOftenThanSingleShotsInTheSameTime) {
  constexpr int kCandidates = 100, kRuns = 200;
  int by_race = 0, by_mean = 0;
  double regret_race = 0, regret_mean = 0;
  for (uint64_t run = 0; run < kRuns; ++run) {
    std::vector<double> truth;
    for (int i = 0; i < kCandidates; ++i) truth.push_back(1 + 0.01 * i);
    Rng shuffle(run);
    Shuffle(shuffle, truth);
    const int right =
        static_cast<int>(std::min_element(truth.begin(), truth.end()) - truth.begin());

    NoisyDevice device(run);
    std::vector<double> first;
    for (const double t : truth) first.push_back(device.Read(t));
    const std::vector<int> finalists = ChooseFinalists(first, 8);
    FinalRace race(static_cast<int>(finalists.size()), {});
    for (auto round = race.NextRound(); !round.empty(); round = race.NextRound()) {
      for (const int i : round) {
        const std::vector<double> readings = {device.Read(truth[finalists[i]]),
                                              device.Read(truth[finalists[i]])};
        race.Add(i, readings);
      }
    }
    const int raced = finalists[race.best()];

    // The same readings, evenly: one or two of each candidate, the mean counts.
    NoisyDevice other(run);
    std::vector<double> mean(kCandidates);
    const int extra = device.readings - kCandidates;
    for (int i = 0; i < kCandidates; ++i) {
      mean[i] = other.Read(truth[i]);
      if (i < extra) mean[i] = (mean[i] + other.Read(truth[i])) / 2;
    }
    const int meant = static_cast<int>(std::min_element(mean.begin(), mean.end()) - mean.begin());
    by_race += raced == right;
    by_mean += meant == right;
    regret_race += truth[raced] - 1;
    regret_mean += truth[meant] - 1;
  }
  RecordProperty("right_by_race", by_race);
  RecordProperty("right_by_mean", by_mean);
  printf(
      "of %d runs the best one is found by finals %d times, by single shots %d times; on average "
      "the choice is %.2f%% and %.2f%% slower than the best\n",
      kRuns, by_race, by_mean, 100 * regret_race / kRuns, 100 * regret_mean / kRuns);
  EXPECT_GT(by_race, by_mean + kRuns / 10);
  EXPECT_LT(regret_race, 0.7 * regret_mean);
}

// The interval holds what it says.
TEST(FinalRace, ConfidenceCoversTheTruth) {
  int covered = 0;
  constexpr int kRuns = 1000;
  for (uint64_t run = 0; run < kRuns; ++run) {
    Rng rng(run);
    std::vector<double> costs_s;
    for (int i = 0; i < 10; ++i) {
      double sum = 0;
      for (int j = 0; j < 12; ++j) sum += UniformReal(rng);
      costs_s.push_back(1 + 0.02 * (sum - 6));
    }
    const MedianCost m = MedianOf(costs_s);
    covered += std::abs(m.cost_s - 1) <= m.confidence_s;
  }
  EXPECT_GT(covered, 880);
  EXPECT_LT(covered, 990);
}

}  // namespace
}  // namespace kiln::search
