#include "store/merge.h"

#include "base/status_testing.h"
#include "store/folder_testing.h"
#include "store/memory_store.h"
#include "store/record_testing.h"
#include "store/sqlite_store.h"

namespace kiln::store {
namespace {

using testing::HasSubstr;

Status AddJobWith(Store& store, const std::string& id, uint32_t trials, int64_t created_ms = 1) {
  JobRow job;
  job.id = id;
  job.state = JobState::kSucceeded;
  job.created_ms = created_ms;
  TaskRow task;
  task.workload_id = kTestId;
  task.workload_key = kTestKey;
  task.dag = TestRecord(id, 0).dag;
  task.target = kTestTarget;
  task.description = "op";
  KILN_RETURN_IF_ERROR(store.AddJob(job, {&task, 1}));
  RoundRow round;
  round.job_id = id;
  round.trials = trials;
  KILN_RETURN_IF_ERROR(store.AddRound(round).status());
  for (uint32_t trial = 0; trial < trials; ++trial) {
    const Record record = trial % 4 == 3 ? FailedRecord(id, trial, 2) : TestRecord(id, trial);
    KILN_RETURN_IF_ERROR(store.AddRecord(record).status());
  }
  return OkStatus();
}

Status AddImported(Store& store, int64_t timestamp_s) {
  const JobRow job{.id = "import", .state = JobState::kSucceeded, .created_ms = timestamp_s};
  const Status added = store.AddJob(job);
  if (added.code() != StatusCode::kAlreadyExists) KILN_RETURN_IF_ERROR(added);
  Record record;
  record.workload_key = "[\"k\"]";
  record.target = "llvm";
  record.steps = "[]";
  record.costs_s = {1e-3};
  record.timestamp_s = timestamp_s;
  return store.ImportRecords("import", {&record, 1}).status();
}

std::vector<std::string> Contents(Store& store) {
  std::vector<std::string> all;
  EXPECT_OK(store.ForEachRecord({.include_errors = true}, [&](const Record& record) {
    all.push_back(Describe(record));
    return OkStatus();
  }));
  return all;
}

TEST(Merge, TakesAllAndASecondTimeNothing) {
  TestFolder folder;
  ASSERT_OK_AND_ASSIGN(const auto into, OpenSqliteStore(folder.File("into.db")));
  const auto from = NewMemoryStore();
  ASSERT_OK(AddJobWith(*into, "a", 3));
  ASSERT_OK(AddImported(*into, 1));
  ASSERT_OK(AddJobWith(*from, "b", 5000));
  ASSERT_OK(AddImported(*from, 1));
  ASSERT_OK(AddImported(*from, 2));
  const AutotvmRecord autotvm{.target = "llvm", .task = "t", .costs_s = {1}};
  ASSERT_OK(from->ImportAutotvmRecords({&autotvm, 1}));
  ASSERT_OK(from->SetCalibration(
      {.device = "cpu", .compute_capability = 0, .constants = "c", .fitted_s = 1, .report = ""}));

  ASSERT_OK(from->AddModel({.name = "m", .file = "bytes"}));
  ASSERT_OK(from->PinSchedule({.workload_id = "w", .target = "llvm", .steps = "[]"}));

  ASSERT_OK_AND_ASSIGN(const MergeResult first, MergeStore(*from, *into, 5));
  EXPECT_EQ(first.jobs, 1);
  EXPECT_EQ(first.records, 5001);
  EXPECT_EQ(first.autotvm, 1);
  EXPECT_EQ(first.duplicates, 1) << "the imported line that both have";
  EXPECT_EQ(first.conflicts, 0) << first.first_conflict;
  ASSERT_OK_AND_ASSIGN(const auto records, into->RecordsOfJob("b", 0));
  ASSERT_EQ(records.size(), 5000);
  EXPECT_EQ(Describe(records[7]), Describe(FailedRecord("b", 7, 2)));
  EXPECT_EQ(into->TasksOfJob("b")->size(), 1);
  EXPECT_EQ(into->RoundsOfJob("b", 0)->size(), 1);
  EXPECT_EQ(into->Calibrations()->size(), 1);
  EXPECT_EQ(into->GetModel("m")->file, "bytes");
  EXPECT_EQ(into->PinnedSchedules("w")->size(), 1);
  EXPECT_EQ(into->GetJob("b")->state, JobState::kSucceeded);

  const auto before = Contents(*into);
  ASSERT_OK_AND_ASSIGN(const MergeResult second, MergeStore(*from, *into, 6));
  EXPECT_EQ(second.jobs + second.records + second.autotvm + second.conflicts, 0);
  EXPECT_EQ(second.duplicates, 5003);
  EXPECT_EQ(Contents(*into), before);
}

TEST(Merge, OtherModelsAndSchedulesOfTheSameNameStay) {
  const auto from = NewMemoryStore(), into = NewMemoryStore();
  for (const auto& [store, text] : {std::pair(from.get(), "[1]"), std::pair(into.get(), "[2]")}) {
    ASSERT_OK(store->AddModel({.name = "m", .file = text}));
    ASSERT_OK(store->PinSchedule({.workload_id = "w", .target = "llvm", .steps = text}));
  }
  ASSERT_OK_AND_ASSIGN(const MergeResult result, MergeStore(*from, *into, 5));
  EXPECT_EQ(result.conflicts, 2);
  EXPECT_EQ(result.first_conflict, "there is another cost model 'm'");
  EXPECT_EQ(into->GetModel("m")->file, "[2]");
  EXPECT_EQ(into->PinnedSchedules("w")->front().steps, "[2]");
}

TEST(Merge, AJobThatBothHaveIsCompleted) {
  const auto from = NewMemoryStore(), into = NewMemoryStore();
  ASSERT_OK(AddJobWith(*from, "a", 5));
  ASSERT_OK(AddJobWith(*into, "a", 2));
  ASSERT_OK_AND_ASSIGN(const MergeResult result, MergeStore(*from, *into, 5));
  EXPECT_EQ(result.jobs, 0);
  EXPECT_EQ(result.records, 3);
  EXPECT_EQ(result.duplicates, 2);
}

TEST(Merge, DifferingEntriesStayAndAreCounted) {
  const auto from = NewMemoryStore(), into = NewMemoryStore();
  ASSERT_OK(AddJobWith(*from, "a", 5));
  ASSERT_OK(AddJobWith(*into, "a", 0));
  // Another result of the trial.
  ASSERT_OK(into->AddRecord(TestRecord("a", 1, 0.25)));
  ASSERT_OK(AddJobWith(*from, "b", 2));
  // Another job.
  ASSERT_OK(AddJobWith(*into, "b", 0, /*created_ms=*/77));
  ASSERT_OK_AND_ASSIGN(const MergeResult result, MergeStore(*from, *into, 5));
  EXPECT_EQ(result.records, 4);
  EXPECT_EQ(result.conflicts, 1 + 1 + 2) << "the trial, the job, its two trials";
  EXPECT_THAT(result.first_conflict, HasSubstr("another job b"));
  EXPECT_EQ(into->RecordsOfJob("b", 0)->size(), 0);
  EXPECT_EQ(MeanCost(into->RecordsOfJob("a", 1)->front()), 0.25);
}

TEST(Merge, AJobThatHasNotEndedIsCancelledThere) {
  const auto from = NewMemoryStore(), into = NewMemoryStore();
  ASSERT_OK(from->AddJob({.id = "a", .state = JobState::kRunning}));
  ASSERT_OK(MergeStore(*from, *into, 5));
  ASSERT_OK_AND_ASSIGN(const JobRow job, into->GetJob("a"));
  EXPECT_EQ(job.state, JobState::kCancelled);
  EXPECT_THAT(job.message, HasSubstr("had not ended"));
  EXPECT_EQ(from->GetJob("a")->state, JobState::kRunning);
}

TEST(Merge, BindingsAreTakenUnlessThereIsAnother) {
  const auto from = NewMemoryStore(), into = NewMemoryStore();
  const Computation one{.id = "1", .key = "[\"k\"]", .dag = "d1"};
  ASSERT_OK(AddImported(*from, 1));
  ASSERT_OK(from->BindKey(one));
  ASSERT_OK(MergeStore(*from, *into, 5));
  ASSERT_OK_AND_ASSIGN(const auto bound, into->BoundTo(one.key));
  ASSERT_TRUE(bound.has_value());
  EXPECT_EQ(bound->id, "1");
  ASSERT_OK(into->BindKey({.id = "2", .key = one.key, .dag = "d2"}));
  ASSERT_OK_AND_ASSIGN(const MergeResult result, MergeStore(*from, *into, 5));
  EXPECT_EQ(result.conflicts, 1);
  EXPECT_EQ((*into->BoundTo(one.key))->id, "2");
}

}  // namespace
}  // namespace kiln::store
