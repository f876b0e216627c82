#include "scheduler/pages/trial_digest.h"

#include <fmt/format.h>

#include "base/status_testing.h"
#include "scheduler/pages/round_curve.h"
#include "store/memory_store.h"
#include "store/record_testing.h"

namespace kiln::scheduler {
namespace {

using testing::ElementsAre;

store::Record Measured(uint32_t trial, double cost_s, uint32_t task = 0) {
  store::Record record = store::TestRecord("j1", trial, cost_s);
  record.id = trial + 1;
  record.task_index = task;
  return record;
}

store::Record Failed(uint32_t trial, int error, const std::string& message) {
  store::Record record = store::FailedRecord("j1", trial, error);
  record.id = trial + 1;
  record.message = message;
  return record;
}

TEST(TrialDigestTest, KeepsTheWayToTheBestOfEachTask) {
  TrialDigest digest;
  digest.Add(Measured(0, 4e-3));
  digest.Add(Measured(1, 5e-3));
  digest.Add(Measured(2, 7e-3, /*task=*/1));
  digest.Add(Measured(3, 2e-3));
  EXPECT_EQ(digest.trials(), 4u);
  EXPECT_EQ(digest.last_id(), 4);
  EXPECT_THAT(digest.tasks().at(0).best, ElementsAre(BestPoint{0, 4e-3}, BestPoint{3, 2e-3}));
  EXPECT_THAT(digest.tasks().at(1).best, ElementsAre(BestPoint{2, 7e-3}));
  std::vector<int64_t> top;
  for (const store::Rank& rank : digest.tasks().at(0).top) top.push_back(rank.id);
  EXPECT_THAT(top, ElementsAre(4, 1, 2));
}

TEST(TrialDigestTest, AResultThatComesLateDoesNotTurnTheCurveBack) {
  TrialDigest digest;
  digest.Add(Measured(5, 4e-3));
  digest.Add(Measured(3, 2e-3));
  EXPECT_THAT(digest.tasks().at(0).best, ElementsAre(BestPoint{5, 4e-3}, BestPoint{5, 2e-3}));
}

// The memory stays small however many trials there are, and no trial is lost from the buckets.
TEST(TrialDigestTest, IsBounded) {
  constexpr uint32_t kTrials = 20'000;
  TrialDigest digest;
  for (uint32_t i = 0; i < kTrials; ++i) {
    if (i % 10 == 0) {
      digest.Add(Failed(i, 5, fmt::format("cause {}", std::string(1 + i % 199, 'x'))));
    } else {
      digest.Add(Measured(i, 1e-3 + 1e-7 * (kTrials - i)));
    }
  }
  const TaskDigest& task = digest.tasks().at(0);
  EXPECT_LE(task.buckets.size(), TrialDigest::kMostBuckets);
  EXPECT_GE(task.buckets.size(), TrialDigest::kMostBuckets / 2);
  EXPECT_LE(task.best.size(), TrialDigest::kMostBestPoints);
  EXPECT_EQ(task.best.back().trial, kTrials - 1);
  EXPECT_EQ(task.top.size(), TrialDigest::kMostTop);
  EXPECT_EQ(digest.page_starts().size(), kTrials / TrialDigest::kPageTrials);
  EXPECT_LE(digest.causes().size(), TrialDigest::kMostCauses + 1);
  uint32_t measured = 0, failed = 0;
  for (const auto& [number, bucket] : task.buckets) {
    measured += bucket.measured;
    failed += bucket.failed;
    EXPECT_LE(bucket.low_s, bucket.high_s);
    EXPECT_EQ(bucket.first / task.width, number);
    EXPECT_EQ(bucket.last / task.width, number);
  }
  EXPECT_EQ(measured, kTrials - kTrials / 10);
  EXPECT_EQ(failed, kTrials / 10);
  uint64_t of_causes = 0;
  for (const FailureCause& cause : digest.causes()) of_causes += cause.count;
  EXPECT_EQ(of_causes, kTrials / 10);
}

TEST(TrialDigestTest, CountsFailuresThatDifferInNumbersAsOneCause) {
  TrialDigest digest;
  digest.Add(Failed(0, 5, "output C differs in 12 of 4096 elements\nand so on"));
  digest.Add(Failed(1, 7, "took longer than 10 s"));
  digest.Add(Failed(2, 5, "output C differs in 7 of 4096 elements"));
  const std::vector<FailureCause> causes = digest.causes();
  ASSERT_EQ(causes.size(), 2u);
  EXPECT_EQ(causes[0].count, 2u);
  EXPECT_EQ(causes[0].error, 5);
  EXPECT_EQ(causes[0].message, "output C differs in 7 of 4096 elements");
  EXPECT_EQ(causes[0].first_trial, 0u);
  EXPECT_EQ(causes[0].last_trial, 2u);
  EXPECT_EQ(causes[0].record, 3);
  EXPECT_EQ(causes[1].error, 7);
}

TEST(TrialDigestTest, ReadsInPartsAndGoesOn) {
  const auto store = store::NewMemoryStore();
  store::JobRow job;
  job.id = "j1";
  ASSERT_OK(store->AddJob(job));
  for (uint32_t i = 0; i < 7; ++i) ASSERT_OK(store->AddRecord(store::TestRecord("j1", i)));
  TrialDigest digest;
  EXPECT_EQ(*ReadTrials(*store, "j1", 5, digest), false);
  EXPECT_EQ(digest.trials(), 5u);
  EXPECT_EQ(*ReadTrials(*store, "j1", 5, digest), true);
  EXPECT_EQ(digest.trials(), 7u);
  ASSERT_OK(store->AddRecord(store::TestRecord("j1", 7)));
  EXPECT_EQ(*ReadTrials(*store, "j1", 5, digest), true);
  EXPECT_EQ(digest.trials(), 8u);
}

store::RoundRow Round(uint32_t number, std::optional<double> total_s) {
  store::RoundRow row;
  row.number = number;
  row.trials = 16 * (number + 1);
  row.elapsed_s = number;
  row.total_latency_s = total_s;
  return row;
}

TEST(RoundCurveTest, LeavesOutRoundsWithoutATotal) {
  RoundCurve curve;
  curve.Add(Round(0, std::nullopt));
  curve.Add(Round(1, 2e-3));
  curve.Add(Round(2, INFINITY));
  EXPECT_EQ(curve.next(), 3u);
  EXPECT_THAT(curve.points(), ElementsAre(RoundPoint{32, 1, 2e-3, 0}));
}

TEST(RoundCurveTest, IsBoundedAndKeepsTheEnd) {
  RoundCurve curve;
  for (uint32_t i = 0; i < 10'000; ++i) curve.Add(Round(i, 1.0 / (1 + i)));
  EXPECT_LE(curve.points().size(), RoundCurve::kMostPoints);
  EXPECT_EQ(curve.points().back().trials, 160'000u);
  const std::vector<RoundPoint> few = curve.Thinned(40);
  EXPECT_EQ(few.size(), 40u);
  EXPECT_EQ(few.back(), curve.points().back());
}

}  // namespace
}  // namespace kiln::scheduler
