#include "client/fleet/demand_history.h"

#include <gtest/gtest.h>

namespace kiln::client {
namespace {

TEST(DemandHistory, AnEmptyOneKnowsNothing) {
  const DemandHistory history(60);
  EXPECT_EQ(history.Least(10), 0);
  EXPECT_EQ(history.Greatest(60, 8), 8);
}

TEST(DemandHistory, KnowsNothingBeforeTheWindowIsFull) {
  DemandHistory history(60);
  history.Add(0, 3);
  EXPECT_EQ(history.Least(0), 3);
  history.Add(9, 3);
  EXPECT_EQ(history.Least(10), 0);
  EXPECT_EQ(history.Greatest(10, 8), 8);
  history.Add(10, 3);
  EXPECT_EQ(history.Least(10), 3);
  EXPECT_EQ(history.Greatest(10, 8), 3);
}

TEST(DemandHistory, AShortWaveIsNeitherLastingNorForgotten) {
  DemandHistory history(60);
  for (int s = 0; s <= 100; s += 5) history.Add(s, s == 50 ? 6 : 1);
  EXPECT_EQ(history.Least(10), 1);
  EXPECT_EQ(history.Greatest(60, 8), 6);
  EXPECT_EQ(history.Greatest(40, 8), 1);
  history.Add(111, 1);
  EXPECT_EQ(history.Greatest(60, 8), 1) << "the wave is older than the window";
}

TEST(DemandHistory, AWindowIsCountedBetweenSparseLooks) {
  DemandHistory history(60);
  history.Add(0, 5);
  history.Add(100, 2);
  EXPECT_EQ(history.Greatest(60, 8), 2);
  EXPECT_EQ(history.Least(60), 2);
  history.Clear();
  EXPECT_EQ(history.Least(0), 0);
}

}  // namespace
}  // namespace kiln::client
