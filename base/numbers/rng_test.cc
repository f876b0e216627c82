#include "base/numbers/rng.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace kiln {
namespace {

using testing::ElementsAre;

// The values are part of the contract: the same seed gives the same run on every machine.
TEST(RngTest, SequencesAreFixed) {
  Rng default_rng;
  default_rng.discard(9999);
  // The value that the C++ standard requires.
  EXPECT_EQ(default_rng(), 9981545732273789042u);

  Rng rng(42);
  std::vector<int64_t> ints;
  for (int i = 0; i < 6; ++i) ints.push_back(UniformInt(rng, 100));
  EXPECT_THAT(ints, ElementsAre(6, 24, 50, 62, 81, 28));
  EXPECT_EQ(UniformReal(rng), 0.57457030410826393);
  std::vector<int> items = {0, 1, 2, 3, 4, 5, 6, 7};
  Shuffle(rng, items);
  EXPECT_THAT(items, ElementsAre(5, 3, 6, 2, 7, 1, 4, 0));
  EXPECT_EQ(SplitSeed(1, 0), 16860738450190168606u);
}

TEST(RngTest, UniformIntCoversItsRangeEvenly) {
  Rng rng(1);
  std::vector<int> counts(7);
  for (int i = 0; i < 70'000; ++i) ++counts[UniformInt(rng, 7)];
  for (int count : counts) EXPECT_NEAR(count, 10'000, 500);
}

TEST(RngTest, UniformInIncludesBothEnds) {
  Rng rng(2);
  std::set<int64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(UniformIn(rng, -2, 2));
  EXPECT_THAT(seen, ElementsAre(-2, -1, 0, 1, 2));
}

TEST(RngTest, UniformRealIsInTheUnitInterval) {
  Rng rng(3);
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double x = UniformReal(rng);
    ASSERT_GE(x, 0);
    ASSERT_LT(x, 1);
    sum += x;
  }
  EXPECT_NEAR(sum / 100'000, 0.5, 0.01);
}

TEST(RngTest, ShuffleReachesEveryOrderEvenly) {
  Rng rng(4);
  std::map<std::vector<int>, int> counts;
  for (int i = 0; i < 24'000; ++i) {
    std::vector<int> items = {0, 1, 2, 3};
    Shuffle(rng, items);
    ++counts[items];
  }
  EXPECT_EQ(counts.size(), 24u);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 200);
}

TEST(RngTest, PickWeightedFollowsTheWeights) {
  Rng rng(5);
  const std::vector<double> weights = {0, 1, 0, 3, 0};
  std::vector<int> counts(5);
  for (int i = 0; i < 40'000; ++i) ++counts[PickWeighted(rng, weights)];
  EXPECT_EQ(counts[0] + counts[2] + counts[4], 0);
  EXPECT_NEAR(counts[1], 10'000, 500);
}

TEST(RngTest, ChanceIsItsProbability) {
  Rng rng(6);
  int hits = 0;
  for (int i = 0; i < 10'000; ++i) hits += Chance(rng, 0.2);
  EXPECT_NEAR(hits, 2000, 200);
  EXPECT_FALSE(Chance(rng, 0));
  EXPECT_TRUE(Chance(rng, 1));
}

TEST(RngTest, SplitSeedsDiffer) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    for (uint64_t stream = 0; stream < 100; ++stream) seen.insert(SplitSeed(seed, stream));
  }
  EXPECT_EQ(seen.size(), 10'000u);
}

TEST(RngDeathTest, AnEmptyRangeIsABug) {
  Rng rng(7);
  EXPECT_DEATH(UniformInt(rng, 0), "UniformInt over 0 values");
  const std::vector<double> none = {0, 0};
  EXPECT_DEATH(PickWeighted(rng, none), "2 weights, their sum 0");
}

}  // namespace
}  // namespace kiln
