#include "search/choice/record_or_heuristic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/workload_id.h"
#include "device/calibration.h"
#include "search/choice/context.h"
#include "search/policies/first_candidates.h"
#include "store/memory_store.h"

namespace kiln::search {
namespace {

constexpr uint64_t kSeed = kHeuristicSeed;

// A matrix product whose unscheduled loops take some 50 times as long as the heuristic schedule.
class RecordOrHeuristicTest : public testing::Test {
 protected:
  RecordOrHeuristicTest() {
    KILN_CHECK(store_->AddJob({.id = "j"}).ok(), "a new job");
    heuristic_ = *ChooseHeuristic(task_, device::CalibrationOf(task_.device).row, kSeed);
  }

  store::Record RecordOf(const std::string& steps, double cost_s, const std::string& origin = "") {
    store::Record record;
    record.job_id = "j";
    record.trial = trials_++;
    record.workload_id = dag::WorkloadId(*task_.dag);
    record.workload_key = task_.workload_key;
    record.target = target::PrintTarget(task_.target);
    record.steps = steps;
    record.origin = origin;
    if (cost_s > 0) record.costs_s = {cost_s};
    if (cost_s <= 0) record.error = 5;
    return record;
  }
  int64_t Add(const store::Record& record) { return *store_->AddRecord(record); }
  int64_t AddHeuristic(double cost_s) {
    return Add(
        RecordOf(heuristic_.steps, cost_s, std::string(kHeuristicOrigin) + heuristic_.origin));
  }
  int64_t AddTuned(double cost_s) { return Add(RecordOf(kTuned, cost_s)); }
  int64_t AddLoops(double cost_s) { return Add(RecordOf("[]", cost_s)); }

  Choice Query() {
    StoreRecords records(*store_);
    HistoryBest context(records, {.heuristic_seed = kSeed});
    return *context.Query(task_);
  }
  void ExpectRecord(int64_t id) {
    const Choice choice = Query();
    EXPECT_EQ(choice.source, ChoiceSource::kRecord);
    EXPECT_EQ(choice.record, std::to_string(id));
  }
  void ExpectHeuristic() {
    const Choice choice = Query();
    EXPECT_EQ(choice.source, ChoiceSource::kSample);
    EXPECT_EQ(choice.steps, heuristic_.steps);
    EXPECT_EQ(choice.record, "");
  }

  // Tiles the rows by 64, which is not much better than the unscheduled loops.
  const std::string kTuned = "[[\"SP\", 2, 0, 512, [64], 1]]";
  const Task task_{*dag::BuildOp("matmul", "512,512,512", {}),
                   *target::ParseTarget("llvm -mcpu=znver4"),
                   {.num_cores = 2},
                   "[\"matmul\"]"};
  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
  HeuristicChoice heuristic_;
  uint32_t trials_ = 0;
};

TEST_F(RecordOrHeuristicTest, TheUnscheduledLoopsAloneAreNoChoice) {
  AddLoops(0.7);
  ExpectHeuristic();
}

TEST_F(RecordOrHeuristicTest, LoopsThatWereFasterThanTheHeuristicScheduleAre) {
  AddHeuristic(1e-3);
  ExpectRecord(AddLoops(0.9e-3));
}

TEST_F(RecordOrHeuristicTest, LoopsAreTakenWhereTheHeuristicScheduleFails) {
  AddHeuristic(0);
  ExpectRecord(AddLoops(0.7));
}

TEST_F(RecordOrHeuristicTest, AFirstReadingHasToBeFasterByMoreThanItsNoise) {
  const int64_t heuristic = AddHeuristic(1e-3);
  AddTuned(0.99e-3);
  ExpectRecord(heuristic);
  ExpectRecord(AddTuned(0.9e-3));
}

// The second best guess was measured because it may be faster. If it is faster only within the
// noise, it is not taken.
TEST_F(RecordOrHeuristicTest, ASecondHeuristicScheduleHasToBeFasterByMoreThanNoise) {
  const int64_t heuristic = AddHeuristic(1e-3);
  Add(RecordOf(kTuned, 0.99e-3, std::string(kHeuristicOrigin) + "the next one"));
  ExpectRecord(heuristic);
}

TEST_F(RecordOrHeuristicTest, WhatTheModelChoseOrNobodyReadAgainIsNotReused) {
  store::Record record = RecordOf(kTuned, 1e-3, "sketch 1, random");
  EXPECT_FALSE(IsWorthReusing(record));
  record.remeasured_costs_s = {1e-3, 1e-3};
  EXPECT_TRUE(IsWorthReusing(record));
  record.origin = std::string(kHeuristicOrigin) + "sketch 1, by rule";
  EXPECT_FALSE(IsWorthReusing(record));
  EXPECT_TRUE(IsWorthReusing(RecordOf(kTuned, 1e-3))) << "of a log";
  EXPECT_FALSE(IsWorthReusing(RecordOf("[]", 1e-3)));
}

TEST_F(RecordOrHeuristicTest, ReadingsThatDifferAreNoisier) {
  store::Record heuristic = RecordOf(heuristic_.steps, 1e-3, std::string(kHeuristicOrigin));
  heuristic.costs_s = {0.8e-3, 1.0e-3, 1.2e-3};
  const int64_t id = Add(heuristic);
  AddTuned(0.8e-3);
  ExpectRecord(id);
  ExpectRecord(AddTuned(0.5e-3));
}

TEST_F(RecordOrHeuristicTest, WhatWasReadAgainBesideItsRivalsIsTaken) {
  AddHeuristic(1e-3);
  const int64_t tuned = AddTuned(0.99e-3);
  store::Remeasurement again{.id = tuned, .costs_s = {0.985e-3, 0.985e-3}, .readings = 2};
  ASSERT_OK(store_->SetRemeasurements({&again, 1}));
  ExpectRecord(tuned);
}

TEST_F(RecordOrHeuristicTest, AShippedRecordThatWasReadAgainIsTakenWhateverItsPlaceInTheFile) {
  store::Record record = RecordOf(kTuned, 0.7);
  record.id = 1;
  record.remeasured_costs_s = {0.7};
  StoreRecords records(*store_);
  RecordOrHeuristic rule(task_, records, kSeed);
  ASSERT_OK_AND_ASSIGN(const Choice own, rule.Choose(record));
  EXPECT_EQ(own.source, ChoiceSource::kSample);
  record.id = 0;
  ASSERT_OK_AND_ASSIGN(const Choice shipped, rule.Choose(record));
  EXPECT_EQ(shipped.source, ChoiceSource::kRecord);
  EXPECT_EQ(shipped.record, "j/0");
}

TEST_F(RecordOrHeuristicTest, ARecordThatIsFarSlowerThanPredictedGivesWay) {
  AddTuned(100 * heuristic_.predicted_s);
  ExpectHeuristic();
}

TEST_F(RecordOrHeuristicTest, OneThatTheModelFindsSlowAndTheDeviceFastIsTaken) {
  ExpectRecord(AddTuned(2 * heuristic_.predicted_s));
}

TEST_F(RecordOrHeuristicTest, ReadingsOfAnotherDeviceSayNothing) {
  store::Record elsewhere = RecordOf(heuristic_.steps, 1e-3, std::string(kHeuristicOrigin));
  elsewhere.device = "another";
  Add(elsewhere);
  store::Record here = RecordOf("[]", 0.9e-3);
  here.device = "this";
  Add(here);
  ExpectHeuristic();
}

TEST_F(RecordOrHeuristicTest, RecordsAloneAreWhatIsAskedForWithoutASeed) {
  const int64_t loops = AddLoops(0.7);
  StoreRecords records(*store_);
  HistoryBest context(records, {});
  EXPECT_EQ(context.Query(task_)->record, std::to_string(loops));
}

}  // namespace
}  // namespace kiln::search
