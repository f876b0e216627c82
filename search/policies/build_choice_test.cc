#include "search/policies/build_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace kiln::search {
namespace {

using testing::ElementsAre;

TEST(BuildChoice, AGainFallsWithThePredictedTime) {
  EXPECT_NEAR(ExpectedGain(1), 0.3989 * kPredictionError, 1e-4 * kPredictionError);
  EXPECT_GT(ExpectedGain(1), ExpectedGain(1.05));
  EXPECT_GT(ExpectedGain(1.05), ExpectedGain(1.5));
  EXPECT_GE(ExpectedGain(100), 0);
}

TEST(BuildChoice, ASlowBuildIsWorthItForAFastProgram) {
  // Minus seconds: the second program is half as fast as the first, the third is nearly as fast.
  EXPECT_THAT(OrderByGainPerSecond({{-1.0, -2.0, -1.01}}, {{1.0, 0.5, 1.0}}, 0.3, 0),
              ElementsAre(0, 2, 1));
  // A program that is almost as fast comes first if its build takes a fifth of the time.
  EXPECT_THAT(OrderByGainPerSecond({{-1.0, -1.02, -1.03}}, {{1.0, 0.2, 1.0}}, 0.3, 0),
              ElementsAre(1, 0, 2));
}

TEST(BuildChoice, TheBestStayInFront) {
  EXPECT_THAT(OrderByGainPerSecond({{-1.0, -1.01, -1.02}}, {{9.0, 0.2, 0.1}}, 0.3, 1),
              ElementsAre(0, 2, 1));
  EXPECT_THAT(OrderByGainPerSecond({{-1.0, -1.01}}, {{9.0, 0.2}}, 0.3, 5), ElementsAre(0, 1));
}

TEST(BuildChoice, ThroughputsAreScoresToo) {
  EXPECT_THAT(OrderByGainPerSecond({{1.0, 0.99, 0.5, 0.0}}, {{1.0, 0.2, 1.0, 0.1}}, 0.3, 0),
              ElementsAre(1, 0, 2, 3));
}

TEST(BuildChoice, WithoutScoresTheOrderStays) {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  EXPECT_THAT(OrderByGainPerSecond({{kNone, kNone}}, {{2.0, 1.0}}, 0.3, 0), ElementsAre(0, 1));
  EXPECT_THAT(OrderByGainPerSecond({{0.0, 0.0}}, {{2.0, 1.0}}, 0.3, 0), ElementsAre(0, 1));
  EXPECT_TRUE(OrderByGainPerSecond({}, {}, 0.3, 0).empty());
}

TEST(BuildChoice, HalfOfTheBuildsAreCheap) {
  EXPECT_THAT(CheapHalf({{3.0, 1.0, 2.0, 4.0}}), ElementsAre(false, true, true, false));
  EXPECT_THAT(CheapHalf({{1.0, 1.0, 1.0}}), ElementsAre(true, true, true));
  EXPECT_TRUE(CheapHalf({}).empty());
}

TEST(BuildLimit, FollowsTheLatestResults) {
  BuildLimit limit;
  for (int i = 0; i < 7; ++i) {
    limit.Note(0.2);
    EXPECT_FALSE(limit.is_reached()) << "only " << i + 1 << " results";
  }
  limit.Note(0.2);
  EXPECT_TRUE(limit.is_reached());
  for (int i = 0; i < 20; ++i) limit.Note(std::nullopt);
  EXPECT_FALSE(limit.is_reached());
  for (int i = 0; i < 20; ++i) limit.Note(0.2);
  EXPECT_TRUE(limit.is_reached());
  EXPECT_NEAR(limit.other_s(), 0.2 * kOtherShare, 1e-9);
}

}  // namespace
}  // namespace kiln::search
