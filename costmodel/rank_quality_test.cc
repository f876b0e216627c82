#include "costmodel/rank_quality.h"

#include <gtest/gtest.h>

#include <vector>

namespace kiln::costmodel {
namespace {

using Values = std::vector<double>;

TEST(RankQualityTest, APerfectOrderIsOneInAllFigures) {
  const Values throughputs = {3, 1, 4, 2};
  EXPECT_EQ(QualityOf(Values{-1, -9, 0.5, -2}, throughputs, 2),
            (RankQuality{.spearman = 1, .pairwise = 1, .recall = 1, .peak = 1}));
}

TEST(RankQualityTest, TheOtherWayRoundItIsAllWrong) {
  const Values throughputs = {4, 3, 2, 1};
  const RankQuality quality = QualityOf(Values{1, 2, 3, 4}, throughputs, 2);
  EXPECT_EQ(quality.spearman, -1);
  EXPECT_EQ(quality.pairwise, 0);
  EXPECT_EQ(quality.recall, 0);
  EXPECT_EQ(quality.peak, 0.5);  // the two chosen have 1 and 2 of 4
}

TEST(RankQualityTest, OneWrongPairOfSix) {
  // The scores of 3 and 4 are swapped.
  const RankQuality quality = QualityOf(Values{1, 2, 4, 3}, Values{1, 2, 3, 4}, 1);
  EXPECT_DOUBLE_EQ(quality.pairwise, 5.0 / 6);
  EXPECT_EQ(quality.recall, 0);
  EXPECT_EQ(quality.peak, 0.75);
}

TEST(RankQualityTest, EqualScoresAreHalfRightAndEqualThroughputsDoNotCount) {
  EXPECT_EQ(QualityOf(Values{1, 1}, Values{1, 2}, 1).pairwise, 0.5);
  EXPECT_EQ(QualityOf(Values{1, 2, 3}, Values{1, 1, 2}, 1).pairwise, 1);
  EXPECT_EQ(QualityOf(Values{1, 2}, Values{1, 1}, 1).pairwise, 1);  // there is nothing to order
}

TEST(RankQualityTest, MoreThanThereAreAreAll) {
  const RankQuality quality = QualityOf(Values{1, 2}, Values{2, 1}, 100);
  EXPECT_EQ(quality.recall, 1);
  EXPECT_EQ(quality.peak, 1);
}

TEST(RankQualityTest, TheMeanIsThatOfEachFigure) {
  const std::vector<RankQuality> all = {{1, 1, 1, 1}, {0, 0.5, 0, 0.5}};
  EXPECT_EQ(MeanOf(all), (RankQuality{0.5, 0.75, 0.5, 0.75}));
}

}  // namespace
}  // namespace kiln::costmodel
