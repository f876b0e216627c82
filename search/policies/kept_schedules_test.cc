#include "search/policies/kept_schedules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace kiln::search {
namespace {

constexpr int kSlowNiche = 7;

Individual Schedule(uint64_t hash, double cost_s, int niche = 0) {
  FloatMatrix rows(2, 8);
  rows.row(1)[3] = static_cast<float>(hash);
  return {.hash = hash,
          .sketch = niche / kUnitKinds,
          .unit_kind = niche % kUnitKinds,
          .rows = std::make_shared<const FloatMatrix>(std::move(rows)),
          .cost_s = cost_s};
}

std::vector<uint64_t> HashesOf(const MeasuredSchedules& measured) {
  std::vector<uint64_t> hashes;
  for (const KeptSchedule& kept : measured.fastest()) hashes.push_back(kept.individual.hash);
  return hashes;
}

TEST(MeasuredSchedulesTest, TheFastestAreKeptAndAllAreCounted) {
  MeasuredSchedules measured(20, 8);
  // The costs are 1 to 997 in no order.
  for (uint64_t i = 1; i < 997; ++i) measured.Add(Schedule(i * 5 % 997, i * 5 % 997));
  std::vector<uint64_t> expected(20);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = i + 1;
  EXPECT_EQ(HashesOf(measured), expected);
  EXPECT_EQ(measured.count(), 996);
  EXPECT_EQ(measured.count_of_niche(0), 996);
  EXPECT_EQ(measured.best_s(), 1);
  EXPECT_EQ(measured.Fastest(3, false).size(), 3u);
  EXPECT_EQ(measured.Fastest(300, false).size(), 20u);
}

TEST(MeasuredSchedulesTest, TheFastestOfANicheIsKept) {
  MeasuredSchedules measured(20, 8);
  for (uint64_t i = 0; i < 3; ++i) measured.Add(Schedule(2000 + i, 2000.0 + i, kSlowNiche));
  for (uint64_t i = 1; i < 500; ++i) measured.Add(Schedule(i, i));
  EXPECT_EQ(measured.fastest().size(), 20u);
  EXPECT_EQ(measured.fastest().back().individual.hash, 2000u);
  EXPECT_EQ(measured.count_of_niche(kSlowNiche), 3);
  const std::vector<double> best_s = measured.BestOfNiches();
  EXPECT_EQ(best_s[0], 1);
  EXPECT_EQ(best_s[1], 0) << "a niche without schedules";
  EXPECT_EQ(best_s[kSlowNiche], 2000);
}

TEST(MeasuredSchedulesTest, PackedRowsComeBack) {
  MeasuredSchedules measured(100, 1);
  for (uint64_t i = 1; i <= 50; ++i) measured.Add(Schedule(i, i));
  for (const KeptSchedule& kept : measured.fastest()) EXPECT_EQ(kept.individual.rows, nullptr);
  for (const Individual& individual : measured.Fastest(50, true)) {
    const Individual expected = Schedule(individual.hash, 1);
    EXPECT_EQ(*individual.rows, *expected.rows);
  }
}

TEST(MeasuredSchedulesTest, LessAreKeptFromNowOn) {
  MeasuredSchedules measured(100, 8);
  measured.Add(Schedule(2000, 2000.0, kSlowNiche));
  for (uint64_t i = 1; i <= 99; ++i) measured.Add(Schedule(i, i));
  measured.SetMost(4);
  EXPECT_EQ(HashesOf(measured), (std::vector<uint64_t>{1, 2, 3, 2000}));
  EXPECT_EQ(measured.count(), 100);
  measured.SetMost(6);
  for (const uint64_t hash : {3001u, 3002u, 3003u}) measured.Add(Schedule(hash, 2.5));
  EXPECT_EQ(HashesOf(measured), (std::vector<uint64_t>{1, 2, 3001, 3002, 3003, 2000}));
  measured.SetMost(0);
  EXPECT_EQ(HashesOf(measured), (std::vector<uint64_t>{1, 2000})) << "the fastest of each niche";
}

TEST(MeasuredSchedulesTest, ATakenScheduleHasItsRows) {
  MeasuredSchedules measured(100, 1);
  for (uint64_t i = 1; i <= 50; ++i) measured.Add(Schedule(i, i));
  const auto taken = measured.Take(1), slow = measured.Take(50);
  ASSERT_TRUE(taken && slow);
  EXPECT_EQ(*taken->rows, *Schedule(1, 1).rows);
  EXPECT_EQ(*slow->rows, *Schedule(50, 1).rows);
  EXPECT_FALSE(measured.Take(1).has_value());
  EXPECT_EQ(measured.count(), 48);
  EXPECT_EQ(measured.count_of_niche(0), 48);
}

}  // namespace
}  // namespace kiln::search
