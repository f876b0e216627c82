// The conformance suite, queries: what every Store finds among its records.
#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/status_testing.h"
#include "store/record_testing.h"
#include "store/store_testing.h"

namespace kiln::store {
namespace {

using testing::_;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST_P(StoreTest, BestIsTheSmallestMeanOfTheCompleteOnes) {
  AddJob("j");
  EXPECT_EQ(Best(kTest, ""), -1);
  Add(FailedRecord("j", 0, 5));
  EXPECT_EQ(Best(kTest, ""), -1);
  Record early = TestRecord("j", 1, 0.5);
  early.stopped_early = true;
  Add(early);
  // Nothing else exists.
  EXPECT_EQ(Best(kTest, ""), 1);
  Record mean = TestRecord("j", 2);
  mean.costs_s = {0.1, 2.9};
  Add(mean);
  EXPECT_EQ(Best(kTest, kTestTarget), 2);
  Add(TestRecord("j", 3, 1.4));
  EXPECT_EQ(Best(kTest, ""), 3);
  // The record is as good as the older one, which stays.
  Add(TestRecord("j", 4, 1.4));
  EXPECT_EQ(Best(kTest, ""), 3);
  EXPECT_EQ(Trial(store_->BestOfJob("j", 0)), 3);
  EXPECT_EQ(Best(kTest, "llvm"), -1);
  EXPECT_EQ(Best({.id = "other"}, ""), -1);
}

TEST_P(StoreTest, BestOfAnImportIsFoundAsOfAnyJob) {
  AddJob("import");
  Add(TestRecord("import", 0, 2));
  Add(TestRecord("import", 1, 1));
  Add(FailedRecord("import", 2, 1));
  EXPECT_EQ(Trial(store_->BestOfJob("import", 0)), 1);
  EXPECT_EQ(Trial(store_->BestOfJob("import", 1)), -1);
}

TEST_P(StoreTest, BestIsByTargetAndByTask) {
  AddJob("j");
  AddJob("k");
  Record cpu = TestRecord("j", 0, 5);
  cpu.target = "llvm";
  Add(cpu);
  Add(TestRecord("j", 1, 1));
  Record second_task = TestRecord("k", 2, 0.5);
  second_task.task_index = 1;
  Add(second_task);
  Add(TestRecord("k", 3, 0.75));
  EXPECT_EQ(Best(kTest, "llvm"), 0);
  EXPECT_THAT(Trials(store_->BestRecords(kTest, "")), ElementsAre(2, 0));
  EXPECT_THAT(Trials(store_->BestRecords({.id = "other"}, "")), IsEmpty());
  EXPECT_EQ(Trial(store_->BestOfJob("k", 0)), 3);
  EXPECT_EQ(Trial(store_->BestOfJob("k", 1)), 2);
  EXPECT_EQ(Trial(store_->BestOfJob("k", 2)), -1);
  EXPECT_THAT(Trials(store_->RecordsOfWorkload(kTest, "")), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Trials(store_->RecordsOfWorkload(kTest, "llvm")), ElementsAre(0));
}

TEST_P(StoreTest, UnscheduledIsTheNewestRightOneOfTheTask) {
  AddJob("j");
  EXPECT_EQ(Trial(store_->UnscheduledOfJob("j", 0)), -1);
  const auto add = [&](Record record) {
    record.steps = kNoSteps;
    Add(record);
  };
  add(TestRecord("j", 0, 3));
  Add(TestRecord("j", 1, 1));
  Record other = TestRecord("j", 2, 2);
  other.task_index = 1;
  add(other);
  EXPECT_EQ(Trial(store_->UnscheduledOfJob("j", 0)), 0);
  EXPECT_EQ(Trial(store_->UnscheduledOfJob("j", 1)), 2);
  // A record of another device.
  add(TestRecord("j", 3, 4));
  add(FailedRecord("j", 4, 5));
  EXPECT_EQ(Trial(store_->UnscheduledOfJob("j", 0)), 3);
  EXPECT_EQ(Trial(store_->UnscheduledOfJob("k", 0)), -1);
}

TEST_P(StoreTest, ForEachRecordFiltersByPlaceAndTimeAndRank) {
  AddJob("j");
  for (uint32_t trial = 0; trial < 6; ++trial) {
    Record record = trial == 2 ? FailedRecord("j", trial, 3) : TestRecord("j", trial, 6.0 - trial);
    record.device = trial % 2 == 0 ? "cpu" : "NVIDIA H100";
    record.target = trial < 3 ? "llvm -mcpu=a" : "llvm -mcpu=b";
    record.timestamp_s = 1000 + trial;
    record.stopped_early = trial == 5;
    Add(record);
  }
  EXPECT_THAT(Visited({.device = "cpu"}), ElementsAre(0, 4));
  EXPECT_THAT(Visited({.device = "cpu", .include_errors = true}), ElementsAre(0, 2, 4));
  EXPECT_THAT(Visited({.target = "llvm -mcpu"}), ElementsAre(0, 1, 3, 4, 5));
  EXPECT_THAT(Visited({.target = "llvm -mcpu=b"}), ElementsAre(3, 4, 5));
  EXPECT_THAT(Visited({.since_s = 1003}), ElementsAre(3, 4, 5));
  EXPECT_THAT(Visited({.since_s = 1001, .until_s = 1003}), ElementsAre(1, 3));
  EXPECT_THAT(Visited({.key_prefix = R"(["0fad)"}), ElementsAre(0, 1, 3, 4, 5));
  EXPECT_THAT(Visited({.key_prefix = R"(["0fae)"}), IsEmpty());
  EXPECT_THAT(Visited({.top = 2}), ElementsAre(4, 3));
  EXPECT_THAT(Visited({.include_errors = true, .top = 9}), ElementsAre(4, 3, 1, 0, 5, 2));
}

TEST_P(StoreTest, TheBestOfAJobAreFoundAmongItsTasks) {
  for (const char* id : {"j", "k", "import"}) AddJob(id);
  for (uint32_t trial = 0; trial < 12; ++trial) {
    Record record = trial == 4 ? FailedRecord("j", trial, 3) : TestRecord("j", trial, 12.0 - trial);
    record.task_index = trial % 3;
    record.device = trial % 2 == 0 ? "cpu" : "NVIDIA H100";
    record.target = trial < 6 ? "llvm -mcpu=a" : "llvm -mcpu=b";
    record.timestamp_s = 1000 + trial;
    record.stopped_early = trial == 11;
    Add(record);
  }
  Add(TestRecord("k", 20, 0.1));
  for (uint32_t trial = 0; trial < 3; ++trial) Add(TestRecord("import", trial, 3.0 - trial));
  EXPECT_THAT(Visited({.job_id = "j", .top = 3}), ElementsAre(10, 9, 8));
  EXPECT_THAT(Visited({.job_id = "j", .top = 0}), IsEmpty());
  EXPECT_THAT(Visited({.job_id = "j", .device = "NVIDIA H100", .top = 3}), ElementsAre(9, 7, 5));
  EXPECT_THAT(Visited({.job_id = "j", .target = "llvm -mcpu=a", .top = 3}), ElementsAre(5, 3, 2));
  EXPECT_THAT(Visited({.job_id = "j", .since_s = 1002, .until_s = 1006, .top = 2}),
              ElementsAre(6, 5));
  EXPECT_THAT(Visited({.job_id = "j", .workload = kTest, .top = 2}), ElementsAre(10, 9));
  EXPECT_THAT(Visited({.job_id = "j", .workload = {.id = "other"}, .top = 2}), IsEmpty());
  EXPECT_THAT(Visited({.job_id = "j", .key_prefix = R"(["0fae)", .top = 2}), IsEmpty());
  EXPECT_THAT(Visited({.job_id = "j", .include_errors = true, .top = 99}),
              ElementsAre(10, 9, 8, 7, 6, 5, 3, 2, 1, 0, 11, 4));
  EXPECT_THAT(Visited({.job_id = "k", .top = 2}), ElementsAre(20));
  EXPECT_THAT(Visited({.job_id = "import", .top = 2}), ElementsAre(2, 1));
  EXPECT_THAT(Visited({.job_id = "none", .top = 2}), IsEmpty());
}

TEST_P(StoreTest, IdBeforeTrialIsBelowTheIdsOfTheTrialsFromThere) {
  AddJob("j");
  AddJob("k");
  Add(TestRecord("j", 4));
  Add(TestRecord("j", 0));
  Add(TestRecord("k", 7));
  Add(FailedRecord("j", 3, 2));
  Add(TestRecord("j", 9));
  const int64_t last = Add(TestRecord("j", 1));
  const int64_t first = last - 5;
  const auto before = [&](std::string_view job, uint32_t from_trial, uint32_t most) {
    int64_t id = -1;
    EXPECT_OK(store_->Read([&](Store::Snapshot& snapshot) -> Status {
      KILN_ASSIGN_OR_RETURN(id, snapshot.IdBeforeTrial(job, from_trial, most));
      return OkStatus();
    }));
    return id;
  };
  EXPECT_EQ(before("j", 0, 1), first + 1 - 1);
  EXPECT_EQ(before("j", 0, 100), first - 1);
  EXPECT_EQ(before("j", 1, 2), first + 3 - 1);
  EXPECT_EQ(before("j", 1, 3), first - 1);
  EXPECT_EQ(before("j", 5, 100), first + 4 - 1);
  EXPECT_EQ(before("j", 9, 1), first + 4 - 1);
  EXPECT_EQ(before("j", 10, 100), last);
  EXPECT_EQ(before("k", 0, 1), first + 2 - 1);
  EXPECT_EQ(before("k", 8, 1), first + 2);
  EXPECT_EQ(before("none", 0, 1), 0);
  ASSERT_OK(store_->DeleteRecords(std::vector<int64_t>{first}));
  EXPECT_EQ(before("j", 4, 1), first + 4 - 1);
}

TEST_P(StoreTest, LatestRecordsAreTheNewestOfTheTarget) {
  AddJob("j");
  for (uint32_t trial = 0; trial < 8; ++trial) {
    Record record = trial == 6 ? FailedRecord("j", trial, 2) : TestRecord("j", trial);
    record.workload_id = trial % 2 == 0 ? "even" : "odd";
    if (trial == 5) record.target = "llvm";
    Add(record);
  }
  EXPECT_THAT(Trials(store_->LatestRecords(kTestTarget, 3)), ElementsAre(4, 6, 7));
  EXPECT_THAT(Trials(store_->LatestRecords(kTestTarget, 100)), ElementsAre(0, 1, 2, 3, 4, 6, 7));
  EXPECT_THAT(Trials(store_->LatestRecords("llvm", 3)), ElementsAre(5));
  EXPECT_THAT(Trials(store_->LatestRecords("null", 3)), IsEmpty());
}

TEST_P(StoreTest, CountsTrials) {
  AddJob("j");
  AddJob("k");
  ASSERT_OK_AND_ASSIGN(const TrialCounts none, store_->CountTrials("j"));
  EXPECT_EQ(none.total, 0);
  EXPECT_EQ(none.next_trial, 0);
  Add(TestRecord("j", 0));
  Add(FailedRecord("j", 9, 4));
  Add(FailedRecord("j", 3, 8));
  Record other = FailedRecord("j", 4, 4);
  other.task_index = 2;
  Add(other);
  Add(TestRecord("k", 50));
  ASSERT_OK_AND_ASSIGN(const TrialCounts counts, store_->CountTrials("j"));
  EXPECT_EQ(counts.total, 4);
  EXPECT_THAT(counts.by_error, ElementsAre(1, 0, 0, 0, 2, 0, 0, 0, 1));
  EXPECT_THAT(counts.by_task, ElementsAre(Pair(0, 3), Pair(2, 1)));
  EXPECT_EQ(counts.next_trial, 10);
  EXPECT_EQ(counts.run_s, 4 * 0.25);
  EXPECT_EQ(counts.runners, 1);
}

TEST_P(StoreTest, RemeasurementsDecideWhoIsBest) {
  AddJob("j");
  const int64_t lucky = Add(TestRecord("j", 0, 1e-3));
  const int64_t steady = Add(TestRecord("j", 1, 1.1e-3));
  const int64_t wrong = Add(TestRecord("j", 2, 0.5e-3));
  const std::vector<double> slow = {1.3e-3, 1.2e-3, 9e-3}, quick = {1.1e-3, 1.12e-3};
  const std::vector<Remeasurement> remeasured = {
      {.id = lucky, .costs_s = slow, .confidence_s = 1e-4, .run_s = 0.5},
      {.id = steady,
       .costs_s = quick,
       .confidence_s = 2e-5,
       .readings = 37,
       .run_s = 0.25,
       .device = "GPU-1"},
      {.id = wrong, .run_s = 0.125, .error = 5, .message = "measured again: element 3"}};
  ASSERT_OK(store_->SetRemeasurements(remeasured));
  ASSERT_OK_AND_ASSIGN(const auto best, store_->BestOfJob("j", 0));
  EXPECT_EQ(best->id, steady);
  EXPECT_EQ(best->remeasured_costs_s, quick);
  EXPECT_EQ(best->confidence_s, 2e-5);
  EXPECT_EQ(best->remeasurements, 37u);
  EXPECT_EQ(best->remeasured_run_s, 0.25);
  EXPECT_EQ(best->remeasured_device, "GPU-1");
  EXPECT_EQ(store_->CountTrials("j")->remeasured_run_s, 0.875);
  EXPECT_EQ(best->costs_s, std::vector<double>{1.1e-3});
  EXPECT_DOUBLE_EQ(Cost(*best), 1.11e-3);
  ASSERT_OK_AND_ASSIGN(const Record failed, store_->GetRecord(wrong));
  EXPECT_EQ(failed.error, 5);
  EXPECT_TRUE(failed.costs_s.empty());
  EXPECT_EQ(failed.message, "measured again: element 3");
  // A third record, measured once, would have to beat the medians.
  Add(TestRecord("j", 3, 1.15e-3));
  EXPECT_EQ((*store_->BestOfJob("j", 0))->id, steady);
  EXPECT_EQ(store_->BestRecords(kTest, kTestTarget)->front().id, steady);
  // The change is all or nothing.
  std::vector<Remeasurement> again = {{.id = lucky, .costs_s = quick},
                                      {.id = 99, .costs_s = quick}};
  EXPECT_THAT(store_->SetRemeasurements(again), StatusIs(StatusCode::kNotFound, _));
  again = {{.id = lucky, .costs_s = quick}, {.id = steady, .costs_s = {-1}}};
  EXPECT_THAT(store_->SetRemeasurements(again),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("final cost -1 s")));
  EXPECT_EQ(store_->GetRecord(lucky)->remeasured_costs_s, slow);
  // A record that failed stays failed.
  again = {{.id = wrong, .costs_s = quick, .run_s = 1}};
  ASSERT_OK(store_->SetRemeasurements(again));
  EXPECT_EQ(store_->GetRecord(wrong)->error, 5);
  EXPECT_TRUE(store_->GetRecord(wrong)->remeasured_costs_s.empty());
}

TEST_P(StoreTest, HasMeasurementComparesWhatIdentifiesALine) {
  AddJob("j");
  AddJob("k");
  const Record record = TestRecord("j", 0, 1e-3);
  Add(record);
  auto has = [&](const Record& candidate) {
    StatusOr<bool> answer = store_->HasMeasurement(candidate);
    EXPECT_OK(answer);
    return answer.ok() && *answer;
  };
  Record rounded = TestRecord("k", 5, 1.00001e-3);
  rounded.steps = record.steps;
  rounded.timestamp_s = record.timestamp_s;
  EXPECT_TRUE(has(rounded));
  for (auto change : {+[](Record& r) { r.workload_id = "other"; },
                      +[](Record& r) { r.target = "llvm"; }, +[](Record& r) { r.steps = "[]"; },
                      +[](Record& r) { r.error = 1; }, +[](Record& r) { ++r.timestamp_s; }}) {
    Record changed = rounded;
    change(changed);
    EXPECT_FALSE(has(changed)) << Describe(changed);
  }
}

TEST_P(StoreTest, ForEachRecordFilters) {
  AddJob("j");
  AddJob("k");
  Add(TestRecord("j", 0));
  Add(FailedRecord("j", 1, 2));
  Record other = TestRecord("k", 2);
  other.workload_id = "other";
  Add(other);
  other.trial = 3;
  other.target = "llvm";
  const int64_t last = Add(other);
  EXPECT_THAT(Visited({}), ElementsAre(0, 2, 3));
  EXPECT_THAT(Visited({.include_errors = true}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Visited({.job_id = "j"}), ElementsAre(0));
  EXPECT_THAT(Visited({.job_id = "j", .include_errors = true}), ElementsAre(0, 1));
  EXPECT_THAT(Visited({.workload = {.id = "other"}}), ElementsAre(2, 3));
  EXPECT_THAT(Visited({.workload = {.id = "other"}, .target = "llvm"}), ElementsAre(3));
  EXPECT_THAT(Visited({.job_id = "j", .workload = {.id = "other"}}), IsEmpty());
  EXPECT_THAT(Visited({.after_id = last - 1}), ElementsAre(3));
  EXPECT_THAT(Visited({.after_id = last}), IsEmpty());
}

TEST_P(StoreTest, ForEachRecordStreamsInPagesAndStopsAtAnError) {
  AddJob("j");
  std::vector<Record> batch;
  for (uint32_t trial = 0; trial < 600; ++trial) batch.push_back(TestRecord("j", trial));
  ASSERT_OK(store_->AddRecords(batch));
  EXPECT_EQ(Visited({}).size(), 600);
  // The visitor may call the store: no lock is held.
  uint32_t seen = 0;
  const Status status = store_->ForEachRecord({}, [&](const Record& record) -> Status {
    KILN_RETURN_IF_ERROR(store_->GetRecord(record.id).status());
    return ++seen == 300 ? Cancelled("enough") : OkStatus();
  });
  EXPECT_THAT(status, StatusIs(StatusCode::kCancelled, "enough"));
  EXPECT_EQ(seen, 300);
}

// The answers are those of a sort with BetterThan(), whatever the order of the random records.
TEST_P(StoreTest, BestAgreesWithASortOnRandomRecords) {
  AddJob("j");
  const uint64_t seed = 20240611;
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 rng(seed);
  std::vector<Record> batch;
  for (uint32_t trial = 0; trial < 300; ++trial) {
    Record record = TestRecord("j", trial, 1 + static_cast<double>(rng() % 40) / 7);
    if (rng() % 2 == 0) record.costs_s.push_back(1 + static_cast<double>(rng() % 40) / 7);
    record.error = rng() % 4 == 0 ? static_cast<int>(rng() % kNumErrorKinds) : 0;
    record.stopped_early = rng() % 3 == 0;
    record.workload_id = fmt::format("w{}", rng() % 3);
    record.target = fmt::format("t{}", rng() % 3);
    record.task_index = rng() % 5;
    batch.push_back(record);
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> ids, store_->AddRecords(batch));
  for (size_t i = 0; i < batch.size(); ++i) batch[i].id = ids[i];
  auto expected = [&](auto matches) {
    const Record* best = nullptr;
    for (const Record& r : batch) {
      if (r.error == 0 && matches(r) && (best == nullptr || BetterThan(r, *best))) best = &r;
    }
    return best == nullptr ? int64_t{-1} : int64_t{best->trial};
  };
  for (const std::string id : {"w0", "w1", "w2"}) {
    std::vector<int64_t> all;
    for (const std::string target : {"t0", "t1", "t2"}) {
      all.push_back(
          expected([&](const Record& r) { return r.workload_id == id && r.target == target; }));
      EXPECT_EQ(Best({.id = id}, target), all.back());
    }
    EXPECT_THAT(Trials(store_->BestRecords({.id = id}, "")), testing::ElementsAreArray(all));
  }
  for (uint32_t task = 0; task < 5; ++task) {
    EXPECT_EQ(Trial(store_->BestOfJob("j", task)),
              expected([&](const Record& r) { return r.task_index == task; }));
  }
  std::stable_sort(batch.begin(), batch.end(), BetterThan);
  for (const std::string target : {"", "t1", "t", "none"}) {
    std::vector<uint32_t> ranked;
    for (const Record& r : batch) {
      if (r.error == 0 && r.target.starts_with(target)) ranked.push_back(r.trial);
    }
    for (const uint32_t top : {1u, 7u, 60u, 1000u}) {
      const auto end = ranked.begin() + std::min<size_t>(top, ranked.size());
      EXPECT_EQ(Visited({.target = target, .top = top}),
                std::vector<uint32_t>(ranked.begin(), end));
    }
  }
}

// Each way to the best gives what sorting all records gives: days, groups, groups within a time.
TEST_P(StoreTest, TheBestOfATimeAreThoseOfAllRecords) {
  constexpr int64_t kDay_s = 86'400;
  AddJob("j");
  const uint64_t seed = 20261129;
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 rng(seed);
  std::vector<Record> batch;
  for (uint32_t trial = 0; trial < 3'000; ++trial) {
    Record record = rng() % 10 == 0 ? FailedRecord("j", trial, 4)
                                    : TestRecord("j", trial, 1 + static_cast<double>(rng() % 500));
    record.workload_id = rng() % 20 == 0 ? "rare" : "common";
    record.target = rng() % 2 == 0 ? "llvm" : "null";
    record.stopped_early = rng() % 5 == 0;
    record.measured_as = rng() % 3 == 0 ? "stream/warm/free" : "graph/warm/free";
    // Also before 1970, where days are counted towards zero.
    record.timestamp_s = static_cast<int64_t>(rng() % (20 * kDay_s)) - 3 * kDay_s;
    batch.push_back(record);
  }
  ASSERT_OK(store_->AddRecords(batch));
  std::stable_sort(batch.begin(), batch.end(), BetterThan);
  const auto expected = [&](const RecordFilter& filter) {
    std::vector<uint32_t> trials;
    for (const Record& record : batch) {
      const bool matches =
          record.error == 0 && record.target.starts_with(filter.target) &&
          (filter.workload.id.empty() || record.workload_id == filter.workload.id) &&
          record.timestamp_s >= filter.since_s && record.timestamp_s <= filter.until_s;
      if (matches && trials.size() < *filter.top) trials.push_back(record.trial);
    }
    return trials;
  };
  const int64_t times[] = {std::numeric_limits<int64_t>::min(), -2 * kDay_s, -7, 0, 5 * kDay_s + 17,
                           std::numeric_limits<int64_t>::max()};
  for (const std::string workload : {"", "rare", "common"}) {
    for (const std::string target : {"", "ll"}) {
      for (const int64_t since_s : times) {
        for (const int64_t until_s : times) {
          const RecordFilter filter = {.workload = {.id = workload},
                                       .target = target,
                                       .since_s = since_s,
                                       .until_s = until_s,
                                       .top = 9};
          EXPECT_EQ(Visited(filter), expected(filter))
              << workload << " " << target << " from " << since_s << " to " << until_s;
        }
      }
    }
  }
}

TEST_P(StoreTest, TheBestOfAllLeaveRoomForFailedOnesWhereThereAreFewer) {
  AddJob("j");
  Add(FailedRecord("j", 0, 4));
  for (uint32_t trial = 1; trial < 4; ++trial) {
    Record record = TestRecord("j", trial, trial);
    record.workload_id = trial == 3 ? "" : "w";
    record.stopped_early = trial == 1;
    Add(record);
  }
  EXPECT_THAT(Visited({.top = 2}), ElementsAre(2, 3));
  EXPECT_THAT(Visited({.include_errors = true, .top = 3}), ElementsAre(2, 3, 1));
  EXPECT_THAT(Visited({.include_errors = true, .top = 4}), ElementsAre(2, 3, 1, 0));
  EXPECT_THAT(Visited({.top = 0}), IsEmpty());
}

}  // namespace
}  // namespace kiln::store
