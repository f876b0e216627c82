#include "search/tuning/final_race.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/numbers/rng.h"

namespace kiln::search {
namespace {

TEST(FinalRace, MedianAndItsConfidence) {
  const std::vector<double> costs_s = {1.00, 1.02, 0.98, 1.01, 9.00};
  const MedianCost m = MedianOf(costs_s);
  EXPECT_EQ(m.cost_s, 1.01);
  // The deviations are 0.01, 0.01, 0.03, 0, 7.99, with the median 0.01; t(4) = 2.776 (2.81 here).
  // 0.01 * 1.4826 * 1.2533 / sqrt(5) * 2.81 = 0.02335
  EXPECT_NEAR(m.confidence_s, 0.02335, 2e-5);
  const std::vector<double> two = {2, 4};
  EXPECT_EQ(MedianOf(two).cost_s, 3);
  EXPECT_EQ(MedianOf(two).confidence_s, 0);
  EXPECT_EQ(MedianOf({}).cost_s, 0);
}

TEST(FinalRace, FinalistsAreTheBestOnes) {
  const std::vector<double> costs_s = {3.0, 1.2, 1.0, 1.1, 1.24, 1.26};
  EXPECT_EQ(ChooseFinalists(costs_s, 8), (std::vector<int>{2, 3, 1, 4}));
  EXPECT_EQ(ChooseFinalists(costs_s, 2), (std::vector<int>{2, 3}));
  EXPECT_TRUE(ChooseFinalists(costs_s, 0).empty());
  EXPECT_TRUE(ChooseFinalists({}, 8).empty());
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
  EXPECT_TRUE(race.values_s(1).empty());
}

TEST(FinalRace, SlowOnesLeaveAndEndIt) {
  FinalRace race(2, {.rounds = 9, .rounds_for_all = 2});
  const std::vector<double> quick = {1.00, 1.01}, slow = {1.2, 1.21};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(race.NextRound().size(), 2u);
    race.Add(0, slow);
    race.Add(1, quick);
  }
  EXPECT_TRUE(race.NextRound().empty());
  EXPECT_EQ(race.best(), 1);
}

// A device with known noise: 2% to either side, a slow drift of 3% over the session, and a
// disturbance of up to 30% in one of ten readings. Candidates are 1% apart. Both methods take the
// same number of readings in all.
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
    const int raced = finalists[*race.best()];

    // The other method spreads the same number of readings evenly: one or two for each candidate,
    // whose mean counts.
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
      "of %d runs the best one is found by final race %d times, by single shots %d times; on "
      "average "
      "the choice is %.2f%% and %.2f%% slower than the best\n",
      kRuns, by_race, by_mean, 100 * regret_race / kRuns, 100 * regret_mean / kRuns);
  EXPECT_GT(by_race, by_mean + kRuns / 10);
  EXPECT_LT(regret_race, 0.7 * regret_mean);
}

// Simulates a job: a trial is read once, and then the device is idle for two readings, which go to
// the elites in rounds. The final race begins with these readings. Elites drop out as better ones
// come.
struct SimulatedJob {
  double regret = 0;
  int remeasurements = 0;
};

SimulatedJob SimulateJob(uint64_t seed, bool idle_readings) {
  constexpr int kCandidates = 100, kFinalists = 8;
  std::vector<double> truth;
  for (int i = 0; i < kCandidates; ++i) truth.push_back(1 + 0.01 * i);
  Rng shuffle(seed);
  Shuffle(shuffle, truth);
  NoisyDevice device(seed);
  const auto block_of = [&](int candidate) {
    return std::vector{device.Read(truth[candidate]), device.Read(truth[candidate])};
  };
  // Costs of candidates that were trials by now.
  std::vector<std::optional<double>> first(kCandidates);
  InterleavedReadings readings;
  const auto elites = [&] {
    std::vector<int> known;
    std::vector<double> costs_s;
    for (int i = 0; i < kCandidates; ++i) {
      if (!first[i]) continue;
      known.push_back(i);
      costs_s.push_back(readings.blocks(i) > 0 ? readings.median(i).cost_s : *first[i]);
    }
    std::vector<int> chosen = ChooseFinalists(costs_s, kFinalists);
    for (int& c : chosen) c = known[c];
    return chosen;
  };
  for (int i = 0; i < kCandidates; ++i) {
    first[i] = device.Read(truth[i]);
    if (!idle_readings) continue;
    std::vector<int> open = elites();
    std::erase_if(open, [&](int elite) { return readings.InRound(elite); });
    if (open.empty()) {
      readings.BeginRound();
      open = elites();
    }
    const int next =
        *std::ranges::min_element(open, {}, [&](int elite) { return readings.blocks(elite); });
    readings.Add(next, block_of(next));
  }
  const int before_final_race = device.readings;
  const std::vector<int> finalists = elites();
  FinalRace race(static_cast<int>(finalists.size()), {});
  for (size_t i = 0; i < finalists.size(); ++i) {
    race.Restore(static_cast<int>(i), readings.values_s(finalists[i]),
                 readings.readings(finalists[i]));
  }
  for (auto round = race.NextRound(); !round.empty(); round = race.NextRound()) {
    for (const int i : round) race.Add(i, block_of(finalists[i]));
  }
  return {truth[finalists[*race.best()]] - 1, device.readings - before_final_race};
}

TEST(FinalRace, ReadingsOverTheJobMakeTheFinalRaceShorterAndTheChoiceBetter) {
  constexpr int kRuns = 200;
  int right[2] = {}, remeasurements[2] = {};
  double regret[2] = {};
  for (uint64_t run = 0; run < kRuns; ++run) {
    for (const bool idle_readings : {false, true}) {
      const SimulatedJob job = SimulateJob(run, idle_readings);
      right[idle_readings] += job.regret == 0;
      regret[idle_readings] += job.regret;
      remeasurements[idle_readings] += job.remeasurements;
    }
  }
  printf(
      "of %d runs the best one is found %d times with readings over the job, %d times by final "
      "race "
      "alone; on average %.2f%% and %.2f%% slower than the best, after %d and %d readings in the "
      "final race\n",
      kRuns, right[1], right[0], 100 * regret[1] / kRuns, 100 * regret[0] / kRuns,
      remeasurements[1] / kRuns, remeasurements[0] / kRuns);
  EXPECT_GE(right[1], right[0]);
  EXPECT_LE(regret[1], regret[0]);
  EXPECT_LT(remeasurements[1], 0.6 * remeasurements[0]);
}

TEST(FinalRace, ABlockCountsAsTwoValuesHoweverLongItIs) {
  InterleavedReadings readings;
  readings.Add(7, {});
  EXPECT_EQ(readings.blocks(7), 0);
  EXPECT_FALSE(readings.InRound(7));
  const std::vector<double> slow_hour(98, 1.10), right = {1.00, 1.02}, one = {1.01};
  for (const auto& block : {slow_hour, right, right}) {
    readings.BeginRound();
    readings.Add(7, block);
    EXPECT_TRUE(readings.InRound(7));
  }
  EXPECT_EQ(readings.readings(7), 102);
  EXPECT_EQ(readings.blocks(7), 3);
  EXPECT_EQ(readings.values_s(7).size(), 6u);
  EXPECT_NEAR(readings.median(7).cost_s, 1.02, 1e-9);
  readings.Add(7, one);
  EXPECT_EQ(readings.blocks(7), 3);
  readings.Add(7, one);
  EXPECT_EQ(readings.blocks(7), 4);
  readings.Forget(7);
  EXPECT_EQ(readings.median(7).cost_s, 0);
}

// The device becomes 2% slower with each round. The second candidate comes late, the third one
// leaves.
TEST(FinalRace, DriftIsToldFromCost) {
  InterleavedReadings readings;
  for (int round = 0; round < 9; ++round) {
    const double slow = std::pow(1.02, round);
    readings.BeginRound();
    const auto block = [&](double cost_s) {
      return std::vector{slow * cost_s * 0.999, slow * cost_s * 1.001};
    };
    readings.Add(1, block(1.00));
    if (round >= 5) readings.Add(2, block(0.97));
    if (round < 7) readings.Add(3, block(1.10));
  }
  EXPECT_NEAR(readings.median(2).cost_s / readings.median(1).cost_s, 0.97, 2e-3);
  EXPECT_NEAR(readings.median(3).cost_s / readings.median(1).cost_s, 1.10, 2e-3);
  // Medians are at the level of the typical round.
  EXPECT_NEAR(readings.median(1).cost_s, std::pow(1.02, 4), 0.02);
  // Readings that were kept can be restored, and go on.
  InterleavedReadings restored;
  for (const int i : {1, 2}) restored.Restore(i, readings.values_s(i), readings.readings(i));
  EXPECT_NEAR(restored.median(2).cost_s, readings.median(2).cost_s, 1e-9);
  EXPECT_EQ(restored.readings(2), 8);
  EXPECT_EQ(restored.blocks(2), 4);
  restored.BeginRound();
  restored.Add(1, std::vector{1.5, 1.5});
  restored.Add(4, std::vector{1.2, 1.2});
  EXPECT_NEAR(restored.median(4).cost_s / restored.median(1).cost_s, 0.8, 5e-3);
}

TEST(FinalRace, EarlierReadingsCount) {
  const std::vector<double> first = {1.00, 1.01, 1.02, 1.01}, second = {1.01, 1.00, 1.02, 1.03};
  // Both have enough readings: the final race is over before it begins.
  FinalRace over(2, {.rounds = 2, .rounds_for_all = 2});
  over.Restore(0, first, 40);
  over.Restore(1, second, 40);
  EXPECT_TRUE(over.NextRound().empty());
  EXPECT_EQ(over.best(), 0);
  // The second entry came late: all are read in turns until it has enough readings, except for the
  // third, which has left.
  FinalRace late(3, {.rounds = 4, .rounds_for_all = 2});
  const std::vector<double> few = {1.01, 1.02}, slow = {1.30, 1.31, 1.30, 1.31};
  late.Restore(0, first, 40);
  late.Restore(1, few, 2);
  late.Restore(2, slow, 40);
  const std::vector<double> block = {1.00, 1.01};
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(late.NextRound().size(), 2u);
    late.Add(0, block);
    late.Add(1, block);
  }
  EXPECT_TRUE(late.NextRound().empty());
  EXPECT_EQ(late.readings(2), 40);
}

// The interval covers the truth as often as it claims.
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

// A machine that others use gives such readings. The race goes on until the cost of the best is
// known, but not for ever.
TEST(FinalRace, ReadingsThatDifferAreTakenMoreOften) {
  const auto rounds_of = [](double noise) {
    FinalRace race(2, {});
    int rounds = 0;
    for (auto round = race.NextRound(); !round.empty(); round = race.NextRound()) {
      ++rounds;
      for (const int entry : round) {
        const double off = 1 + (rounds % 2 == 0 ? noise : -noise) * (entry == 0 ? 1 : -1);
        race.Add(entry, std::vector<double>{1e-3 * off, 1e-3 * (2 - off)});
      }
    }
    return rounds;
  };
  EXPECT_EQ(rounds_of(0.001), 5);
  EXPECT_EQ(rounds_of(0.4), 15);
}

}  // namespace
}  // namespace kiln::search
