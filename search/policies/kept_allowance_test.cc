#include "search/policies/kept_allowance.h"

#include <gtest/gtest.h>

#include <vector>

namespace kiln::search {
namespace {

TEST(KeptAllowanceTest, FewTasksKeepAllThatTheyWant) {
  KeptAllowance allowance(kTasksWithoutLess, kLeastKept);
  std::vector<KeptAllowance::Share> shares;
  for (size_t i = 0; i < kTasksWithoutLess; ++i) shares.push_back(allowance.Take());
  EXPECT_EQ(shares[0].Of(512), 512u);
  shares.push_back(allowance.Take());
  EXPECT_LT(shares[0].Of(512), 512u);
  shares.pop_back();
  EXPECT_EQ(shares[0].Of(512), 512u) << "the share of a task that has ended is free";
}

TEST(KeptAllowanceTest, WhatManyTasksKeepDoesNotGrowWithTheirNumber) {
  KeptAllowance allowance(kTasksWithoutLess, kLeastKept);
  std::vector<KeptAllowance::Share> shares;
  for (size_t tasks = 1; tasks <= 8 * kTasksWithoutLess; ++tasks) {
    shares.push_back(allowance.Take());
    EXPECT_LE(tasks * shares[0].Of(512), kTasksWithoutLess * 512) << tasks << " tasks";
    EXPECT_EQ(shares[0].Of(512), shares.back().Of(512)) << "all shares are equal";
  }
  EXPECT_EQ(shares[0].Of(512), 64u);
}

TEST(KeptAllowanceTest, ATaskKeepsAFewHoweverManyThereAre) {
  KeptAllowance allowance(kTasksWithoutLess, kLeastKept);
  std::vector<KeptAllowance::Share> shares;
  for (size_t i = 0; i < 100 * kTasksWithoutLess; ++i) shares.push_back(allowance.Take());
  EXPECT_EQ(shares[0].Of(512), kLeastKept);
  EXPECT_EQ(shares[0].Of(7), 7u) << "and no more than it wants";
}

TEST(KeptAllowanceTest, SchedulesAndSamplesAreSharedOutByThemselves) {
  KeptAllowances allowances;
  std::vector<KeptAllowance::Share> shares;
  for (size_t i = 0; i < 4 * kJobsWithoutLess; ++i) shares.push_back(allowances.samples.Take());
  EXPECT_EQ(shares[0].Of(10'000), 2'500u);
  EXPECT_EQ(shares[0].Of(100), 100u) << "and no less than the least";
  EXPECT_EQ(allowances.schedules.Take().Of(10'000), 10'000u);
}

TEST(KeptAllowanceTest, AnEmptyShareHasNoBound) {
  EXPECT_EQ(KeptAllowance::Share().Of(1'000'000), 1'000'000u);
}

}  // namespace
}  // namespace kiln::search
