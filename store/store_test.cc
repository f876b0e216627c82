// The conformance suite: what every Store does.
#include "store/store.h"

#include <atomic>
#include <cmath>
#include <memory>
#include <random>
#include <thread>

#include "base/status_testing.h"
#include "store/memory_store.h"
#include "store/sqlite_store.h"
#include "store/test_folder.h"
#include "store/test_record.h"

namespace kiln::store {
namespace {

using testing::_;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

const WorkloadRef kTest = {.id = kTestId, .keys = {kTestKey}};

struct Implementation {
  const char* name;
  StatusOr<std::unique_ptr<Store>> (*open)(const TestFolder& folder);
};

class StoreTest : public testing::TestWithParam<Implementation> {
 protected:
  void SetUp() override { ASSERT_OK_AND_ASSIGN(store_, GetParam().open(folder_)); }

  void AddJob(const std::string& id) {
    JobRow job;
    job.id = id;
    ASSERT_OK(store_->AddJob(job));
  }
  int64_t Add(const Record& record) {
    StatusOr<int64_t> id = store_->AddRecord(record);
    EXPECT_OK(id);
    return id.ok() ? *id : -1;
  }
  // The trial of a best-record answer, -1 if there is none.
  static int64_t Trial(const StatusOr<std::optional<Record>>& best) {
    EXPECT_OK(best);
    return best.ok() && best->has_value() ? int64_t{(*best)->trial} : -1;
  }
  int64_t Best(const WorkloadRef& workload, std::string_view target) {
    const auto best = store_->BestRecords(workload, target);
    EXPECT_OK(best);
    if (!best.ok() || best->empty()) return -1;
    EXPECT_EQ(best->size(), 1u);
    return best->front().trial;
  }
  static std::vector<uint32_t> Trials(const StatusOr<std::vector<Record>>& records) {
    EXPECT_OK(records);
    std::vector<uint32_t> trials;
    if (records.ok()) {
      for (const Record& record : *records) trials.push_back(record.trial);
    }
    return trials;
  }
  std::vector<uint32_t> Visited(const RecordFilter& filter) {
    std::vector<uint32_t> trials;
    EXPECT_OK(store_->ForEachRecord(filter, [&](const Record& record) {
      trials.push_back(record.trial);
      return OkStatus();
    }));
    return trials;
  }

  TestFolder folder_;
  std::unique_ptr<Store> store_;
};

INSTANTIATE_TEST_SUITE_P(
    All, StoreTest,
    testing::Values(Implementation{"Memory",
                                   [](const TestFolder&) -> StatusOr<std::unique_ptr<Store>> {
                                     return NewMemoryStore();
                                   }},
                    Implementation{"Sqlite",
                                   [](const TestFolder& folder) {
                                     return OpenSqliteStore(folder.File("kiln.db"));
                                   }}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_P(StoreTest, JobKeepsEveryField) {
  JobRow job;
  job.id = "j1";
  job.name = "o'brien; DROP TABLE jobs";
  job.user = "grüße";
  job.priority = -7;
  job.state = JobState::kRunning;
  job.message = "m";
  job.spec = std::string("\0\xff\x01bytes\0", 9);
  job.created_ms = 1700000000123;
  job.started_ms = 2;
  job.finished_ms = 3;
  ASSERT_OK(store_->AddJob(job));
  ASSERT_OK_AND_ASSIGN(const JobRow found, store_->GetJob("j1"));
  EXPECT_EQ(found.id, job.id);
  EXPECT_EQ(found.name, job.name);
  EXPECT_EQ(found.user, job.user);
  EXPECT_EQ(found.priority, job.priority);
  EXPECT_EQ(found.state, job.state);
  EXPECT_EQ(found.message, job.message);
  EXPECT_EQ(found.spec, job.spec);
  EXPECT_EQ(found.created_ms, job.created_ms);
  EXPECT_EQ(found.started_ms, job.started_ms);
  EXPECT_EQ(found.finished_ms, job.finished_ms);
}

TEST_P(StoreTest, JobsThatAreMissingOrThereTwiceAreRefused) {
  AddJob("j1");
  JobRow job;
  job.id = "j1";
  EXPECT_THAT(store_->AddJob(job), StatusIs(StatusCode::kAlreadyExists, "job j1 exists already"));
  EXPECT_THAT(store_->AddJob(JobRow()), StatusIs(StatusCode::kInvalidArgument, HasSubstr("id")));
  EXPECT_THAT(store_->GetJob("j2"), StatusIs(StatusCode::kNotFound, "no job j2"));
  EXPECT_THAT(store_->UpdateJobState("j2", JobState::kRunning, "", 1),
              StatusIs(StatusCode::kNotFound, "no job j2"));
  EXPECT_THAT(store_->AddTasks("j2", {}), StatusIs(StatusCode::kNotFound, "no job j2"));
  EXPECT_THAT(store_->AddRecord(TestRecord("j2", 0)), StatusIs(StatusCode::kNotFound, "no job j2"));
  EXPECT_THAT(store_->SetReferenceCost("j1", 3, 1),
              StatusIs(StatusCode::kNotFound, "no task 3 in job j1"));
  EXPECT_THAT(store_->GetRecord(1), StatusIs(StatusCode::kNotFound, "no record 1"));
}

TEST_P(StoreTest, JobStatesGoForwardAndKeepTheirTimes) {
  AddJob("j");
  ASSERT_OK(store_->UpdateJobState("j", JobState::kRunning, "", 100));
  ASSERT_OK(store_->UpdateJobState("j", JobState::kQueued, "no workers", 150));
  ASSERT_OK(store_->UpdateJobState("j", JobState::kRunning, "", 200));
  ASSERT_OK(store_->UpdateJobState("j", JobState::kFailed, "disk full", 300));
  ASSERT_OK(store_->UpdateJobState("j", JobState::kFailed, "again", 400));
  EXPECT_THAT(store_->UpdateJobState("j", JobState::kCancelled, "", 500),
              StatusIs(StatusCode::kFailedPrecondition,
                       "job j is already failed, it cannot become cancelled"));
  ASSERT_OK_AND_ASSIGN(const JobRow job, store_->GetJob("j"));
  EXPECT_EQ(job.state, JobState::kFailed);
  EXPECT_EQ(job.message, "disk full");
  EXPECT_EQ(job.started_ms, 100);
  EXPECT_EQ(job.finished_ms, 300);
}

TEST_P(StoreTest, JobsAreListedNewestFirstAndResumedOldestFirst) {
  for (const char* id : {"c", "a", "b", "d"}) AddJob(id);
  ASSERT_OK(store_->UpdateJobState("a", JobState::kSucceeded, "", 1));
  ASSERT_OK(store_->UpdateJobState("b", JobState::kRunning, "", 1));
  auto ids = [](const StatusOr<std::vector<JobRow>>& jobs) {
    std::string joined;
    EXPECT_OK(jobs);
    for (const JobRow& job : *jobs) joined += job.id;
    return joined;
  };
  EXPECT_EQ(ids(store_->ListJobs(0)), "dbac");
  EXPECT_EQ(ids(store_->ListJobs(2)), "db");
  EXPECT_EQ(ids(store_->ListJobs(100)), "dbac");
  EXPECT_EQ(ids(store_->LoadUnfinishedJobs()), "cbd");
}

TEST_P(StoreTest, TasksKeepEveryFieldAndTheirOrder) {
  JobRow job;
  job.id = "j";
  std::vector<TaskRow> tasks(2);
  tasks[0] = {.job_id = "",
              .index = 1,
              .workload_id = "w1",
              .workload_key = "k1",
              .dag = "dag",
              .target = "llvm",
              .weight = 2.5,
              .description = "dense",
              .flop_count = 1e12,
              .reference_cost_s = 0.5,
              .alternative_of = 0,
              .form = "winograd",
              .preparation = "p1 = weights",
              .network = "net"};
  tasks[1] = {.job_id = "j", .index = 0, .workload_key = "k0", .dag = "", .target = "null"};
  ASSERT_OK(store_->AddJob(job, tasks));
  ASSERT_OK(store_->SetReferenceCost("j", 0, 0.125));
  ASSERT_OK_AND_ASSIGN(const std::vector<TaskRow> found, store_->TasksOfJob("j"));
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(found[0].index, 0);
  EXPECT_EQ(found[0].dag, "");
  EXPECT_EQ(found[0].reference_cost_s, 0.125);
  EXPECT_EQ(found[1].job_id, "j");
  EXPECT_EQ(found[1].index, 1);
  EXPECT_EQ(found[1].workload_id, "w1");
  EXPECT_EQ(found[1].workload_key, "k1");
  EXPECT_EQ(found[1].dag, "dag");
  EXPECT_EQ(found[1].target, "llvm");
  EXPECT_EQ(found[1].weight, 2.5);
  EXPECT_EQ(found[1].description, "dense");
  EXPECT_EQ(found[1].flop_count, 1e12);
  EXPECT_EQ(found[1].reference_cost_s, 0.5);
  EXPECT_EQ(found[0].alternative_of, std::nullopt);
  EXPECT_EQ(found[1].alternative_of, 0u);
  EXPECT_EQ(found[1].form, "winograd");
  EXPECT_EQ(found[1].preparation, "p1 = weights");
  EXPECT_EQ(found[1].network, "net");
  ASSERT_OK_AND_ASSIGN(const std::vector<TaskRow> none, store_->TasksOfJob("other"));
  EXPECT_THAT(none, IsEmpty());
}

TEST_P(StoreTest, ARefusedTaskLeavesNothingBehind) {
  JobRow job;
  job.id = "j";
  std::vector<TaskRow> tasks(3);
  tasks[1].index = 1;
  tasks[2].index = 1;
  EXPECT_THAT(store_->AddJob(job, tasks),
              StatusIs(StatusCode::kAlreadyExists, "job j has a task 1 already"));
  EXPECT_THAT(store_->GetJob("j"), StatusIs(StatusCode::kNotFound, "no job j"));
  AddJob("j");
  tasks[2].job_id = "k";
  EXPECT_THAT(store_->AddTasks("j", tasks),
              StatusIs(StatusCode::kInvalidArgument, "task 1 names job k, expected j"));
  ASSERT_OK_AND_ASSIGN(const std::vector<TaskRow> none, store_->TasksOfJob("j"));
  EXPECT_THAT(none, IsEmpty());
  tasks[2] = {.index = 2};
  ASSERT_OK(store_->AddTasks("j", tasks));
  EXPECT_THAT(store_->AddTasks("j", tasks),
              StatusIs(StatusCode::kAlreadyExists, HasSubstr("task 0")));
}

TEST_P(StoreTest, RecordKeepsEveryFieldToTheLastBit) {
  AddJob("j");
  Record record = TestRecord("j", 4000000000u);
  record.id = 77;
  record.task_index = 3;
  record.costs_s = {1.0 / 3.0, 4.9406564584124654e-324, 1.7976931348623157e308, 1e-5};
  record.message = std::string("line 1\nline \0 2 'quoted' \xc3\xbc", 28);
  record.timestamp_s = -1;
  record.stopped_early = true;
  record.max_error = std::nan("");
  record.build_s = INFINITY;
  record.run_s = -0.1;
  record.flop_count = 0.1;
  record.origin = "sketch 1, tile sizes of 'C'";
  record.score = -INFINITY;
  record.final_costs_s = {1.0 / 7.0, 2e-5};
  record.confidence_s = 1e-7;
  record.final_readings = 4'000'000'000;
  record.final_run_s = 0.1;
  record.final_device = "GPU-1";
  record.unchecked = "output y of the reference is 0 in all 64 elements";
  record.hardware = {INT64_MIN, INT64_MAX, 0, 1, 2, 3, 4, 5};
  const int64_t id = Add(record);
  ASSERT_OK_AND_ASSIGN(const Record found, store_->GetRecord(id));
  EXPECT_EQ(found.id, id);
  EXPECT_EQ(Describe(found), Describe(record));
  const int64_t failed = Add(FailedRecord("j", 0, 8));
  ASSERT_OK_AND_ASSIGN(const Record found_failed, store_->GetRecord(failed));
  EXPECT_EQ(Describe(found_failed), Describe(FailedRecord("j", 0, 8)));
}

TEST_P(StoreTest, ASecondRecordOfATrialIsRefused) {
  AddJob("j");
  AddJob("k");
  Add(TestRecord("j", 5, 1));
  EXPECT_THAT(store_->AddRecord(TestRecord("j", 5, 2)),
              StatusIs(StatusCode::kAlreadyExists, "job j has a record of trial 5 already"));
  ASSERT_OK_AND_ASSIGN(const int64_t first, store_->AddRecord(TestRecord("j", 5, 1)));
  ASSERT_OK_AND_ASSIGN(const int64_t again, store_->AddRecord(TestRecord("j", 5, 1)));
  EXPECT_EQ(again, first) << "the same one, delivered again";
  Add(TestRecord("k", 5, 3));
  ASSERT_OK_AND_ASSIGN(const std::vector<Record> records, store_->RecordsOfJob("j", 0));
  ASSERT_EQ(records.size(), 1);
  EXPECT_EQ(records[0].costs_s, std::vector<double>{1});
}

TEST_P(StoreTest, ABatchThatIsRepeatedIsThereOnce) {
  AddJob("j");
  const TaskRow task = {.index = 0, .workload_key = kTestKey, .target = "t"};
  ASSERT_OK(store_->AddTasks("j", {&task, 1}));
  const std::vector<Record> batch = {TestRecord("j", 0), TestRecord("j", 1)};
  const std::vector<ReferenceCost> costs = {{"j", 0, 5e-3}};
  ASSERT_OK_AND_ASSIGN(const auto first, store_->AddRecords(batch, costs));
  ASSERT_OK_AND_ASSIGN(const auto second, store_->AddRecords(batch, costs));
  EXPECT_EQ(first, second);
  EXPECT_EQ(Trials(store_->RecordsOfJob("j", 0)), (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(store_->TasksOfJob("j")->at(0).reference_cost_s, 5e-3);
}

TEST_P(StoreTest, ABatchWithACostOfNoTaskChangesNothing) {
  AddJob("j");
  const std::vector<Record> batch = {TestRecord("j", 0)};
  EXPECT_THAT(store_->AddRecords(batch, std::vector<ReferenceCost>{{"j", 7, 5e-3}}),
              StatusIs(StatusCode::kNotFound, "no task 7 in job j"));
  EXPECT_THAT(Trials(store_->RecordsOfJob("j", 0)), IsEmpty());
}

// What becomes of a job whose process dies again and again.
TEST_P(StoreTest, RunsWithoutAResultAreCounted) {
  AddJob("j");
  const auto fruitless = [&] { return store_->GetJob("j")->fruitless_runs; };
  const auto run = [&] { ASSERT_OK(store_->UpdateJobState("j", JobState::kRunning, "", 5)); };
  EXPECT_EQ(fruitless(), 0);
  run();
  run();
  EXPECT_EQ(fruitless(), 2);
  Add(TestRecord("j", 0));
  EXPECT_EQ(fruitless(), 0) << "a result";
  run();
  ASSERT_OK(store_->UpdateJobState("j", JobState::kQueued, "", 6));
  EXPECT_EQ(fruitless(), 0) << "an end in order";
  run();
  EXPECT_EQ(fruitless(), 1);
  EXPECT_EQ(store_->GetJob("j")->started_ms, 5);
}

TEST_P(StoreTest, AJobThatFailedOrWasCancelledIsReopened) {
  EXPECT_THAT(store_->ReopenJob("none"), StatusIs(StatusCode::kNotFound, "no job none"));
  for (const JobState state : {JobState::kFailed, JobState::kCancelled, JobState::kRunning}) {
    const std::string id(JobStateName(state));
    AddJob(id);
    ASSERT_OK(store_->UpdateJobState(id, JobState::kRunning, "", 5));
    ASSERT_OK(store_->UpdateJobState(id, state, "why", 7));
    ASSERT_OK(store_->ReopenJob(id));
    ASSERT_OK_AND_ASSIGN(const JobRow job, store_->GetJob(id));
    EXPECT_EQ(job.state, JobState::kQueued);
    EXPECT_EQ(job.message, "");
    EXPECT_EQ(job.started_ms, 5);
    EXPECT_EQ(job.finished_ms, 0);
    EXPECT_EQ(job.fruitless_runs, 0);
  }
  AddJob("done");
  ASSERT_OK(store_->UpdateJobState("done", JobState::kSucceeded, "", 7));
  EXPECT_THAT(store_->ReopenJob("done"), StatusIs(StatusCode::kFailedPrecondition, testing::_));
}

TEST_P(StoreTest, AnImportAddsWhatIsNew) {
  AddJob("import");
  std::vector<Record> batch = {TestRecord("", 3), TestRecord("", 9), TestRecord("", 3)};
  ASSERT_OK_AND_ASSIGN(const int64_t first, store_->ImportRecords("import", batch));
  EXPECT_EQ(first, 2);
  batch.push_back(TestRecord("", 4));
  ASSERT_OK_AND_ASSIGN(const int64_t second, store_->ImportRecords("import", batch));
  EXPECT_EQ(second, 1);
  EXPECT_EQ(Trials(store_->RecordsOfJob("import", 0)), (std::vector<uint32_t>{0, 1, 2}));
  batch.push_back(TestRecord("", 5, NAN));
  batch.push_back(TestRecord("", 6));
  EXPECT_THAT(store_->ImportRecords("import", batch),
              StatusIs(StatusCode::kInvalidArgument, testing::_));
  EXPECT_EQ(Trials(store_->RecordsOfJob("import", 0)).size(), 3) << "all or nothing";
  EXPECT_THAT(store_->ImportRecords("none", batch), StatusIs(StatusCode::kNotFound, testing::_));
}

TEST_P(StoreTest, InvalidRecordsAreRefused) {
  AddJob("j");
  EXPECT_THAT(store_->AddRecord(TestRecord("j", 0, NAN)),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("cost nan s")));
  EXPECT_EQ(Trials(store_->RecordsOfJob("j", 0)), std::vector<uint32_t>{});
}

TEST_P(StoreTest, ABatchIsAllOrNothing) {
  AddJob("j");
  std::vector<Record> batch = {TestRecord("j", 0), TestRecord("j", 1), TestRecord("j", 0)};
  EXPECT_THAT(store_->AddRecords(batch),
              StatusIs(StatusCode::kAlreadyExists, HasSubstr("trial 0")));
  EXPECT_THAT(Trials(store_->RecordsOfJob("j", 0)), IsEmpty());
  batch[2] = TestRecord("none", 2);
  EXPECT_THAT(store_->AddRecords(batch), StatusIs(StatusCode::kNotFound, "no job none"));
  EXPECT_THAT(Trials(store_->RecordsOfJob("j", 0)), IsEmpty());
  batch[2] = TestRecord("j", 2);
  ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> ids, store_->AddRecords(batch));
  ASSERT_EQ(ids.size(), 3);
  for (size_t i = 0; i < ids.size(); ++i) {
    ASSERT_OK_AND_ASSIGN(const Record record, store_->GetRecord(ids[i]));
    EXPECT_EQ(record.trial, i);
  }
  EXPECT_LT(ids[0], ids[1]);
  EXPECT_LT(ids[1], ids[2]);
  ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> none, store_->AddRecords({}));
  EXPECT_THAT(none, IsEmpty());
}

TEST_P(StoreTest, RecordsOfJobAreOrderedByTrial) {
  AddJob("j");
  for (uint32_t trial : {3, 0, 2, 7}) Add(TestRecord("j", trial));
  Add(FailedRecord("j", 1, 4));
  EXPECT_THAT(Trials(store_->RecordsOfJob("j", 0)), ElementsAre(0, 1, 2, 3, 7));
  EXPECT_THAT(Trials(store_->RecordsOfJob("j", 2)), ElementsAre(2, 3, 7));
  EXPECT_THAT(Trials(store_->RecordsOfJob("j", 8)), IsEmpty());
  EXPECT_THAT(Trials(store_->RecordsOfJob("k", 0)), IsEmpty());
}

TEST_P(StoreTest, BestIsTheSmallestMeanOfTheCompleteOnes) {
  AddJob("j");
  EXPECT_EQ(Best(kTest, ""), -1);
  Add(FailedRecord("j", 0, 5));
  EXPECT_EQ(Best(kTest, ""), -1);
  Record early = TestRecord("j", 1, 0.5);
  early.stopped_early = true;
  Add(early);
  EXPECT_EQ(Best(kTest, ""), 1);  // nothing else exists
  Record mean = TestRecord("j", 2);
  mean.costs_s = {0.1, 2.9};
  Add(mean);
  EXPECT_EQ(Best(kTest, kTestTarget), 2);
  Add(TestRecord("j", 3, 1.4));
  EXPECT_EQ(Best(kTest, ""), 3);
  Add(TestRecord("j", 4, 1.4));  // as good: the older one stays
  EXPECT_EQ(Best(kTest, ""), 3);
  EXPECT_EQ(Trial(store_->BestOfJob("j", 0)), 3);
  EXPECT_EQ(Best(kTest, "llvm"), -1);
  EXPECT_EQ(Best({.id = "other"}, ""), -1);
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

// ---- computations that bear one key ------------------------------------------------------------

Record RecordOf(const char* workload_id, const std::string& job, uint32_t trial, double cost_s) {
  Record record = TestRecord(job, trial, cost_s);
  record.workload_id = workload_id;
  record.dag = *workload_id == 0 ? "" : std::string("dag of ") + workload_id;
  return record;
}

TEST_P(StoreTest, RecordsAreOfTheirComputationWhateverTheKey) {
  AddJob("j");
  Add(RecordOf("2x2", "j", 0, 1e-3));
  Add(RecordOf("3x3", "j", 1, 2e-3));
  Add(RecordOf("3x3", "j", 2, 3e-3));
  const WorkloadRef small = {.id = "2x2", .keys = {kTestKey}}, large = {.id = "3x3"};
  EXPECT_THAT(Trials(store_->BestRecords(small, "")), ElementsAre(0));
  EXPECT_THAT(Trials(store_->BestRecords(large, kTestTarget)), ElementsAre(1));
  EXPECT_THAT(Trials(store_->RecordsOfWorkload(small, "")), ElementsAre(0));
  EXPECT_THAT(Trials(store_->RecordsOfWorkload(large, "")), ElementsAre(1, 2));
  EXPECT_THAT(Visited({.workload = large}), ElementsAre(1, 2));
  // The key alone means both; each has a best one.
  const WorkloadRef both = {.keys = {kTestKey}};
  EXPECT_THAT(Trials(store_->BestRecords(both, "")), ElementsAre(0, 1));
  EXPECT_THAT(Visited({.workload = both}), ElementsAre(0, 1, 2));
  ASSERT_OK_AND_ASSIGN(const auto known, store_->ComputationsOfKey(kTestKey));
  ASSERT_EQ(known.size(), 2u);
  EXPECT_EQ(known[0].id, "2x2");
  EXPECT_EQ(known[1].dag, "dag of 3x3");
  EXPECT_THAT(*store_->ComputationsOfKey("other"), IsEmpty());
}

TEST_P(StoreTest, ARecordWithoutIdentityCountsWhereItsKeyFitsOneComputation) {
  AddJob("j");
  const WorkloadRef small = {.id = "2x2", .keys = {kTestKey}},
                    large = {.id = "3x3", .keys = {kTestKey}};
  Add(RecordOf("", "j", 0, 1e-3));
  EXPECT_THAT(Trials(store_->BestRecords(small, "")), ElementsAre(0)) << "the only one that asks";
  Add(RecordOf("2x2", "j", 1, 2e-3));
  EXPECT_THAT(Trials(store_->BestRecords(small, "")), ElementsAre(0));
  EXPECT_THAT(Trials(store_->BestRecords({.id = "2x2"}, "")), ElementsAre(0));
  EXPECT_THAT(Trials(store_->BestRecords({.keys = {kTestKey}}, "")), ElementsAre(0));
  EXPECT_THAT(Trials(store_->RecordsOfWorkload(small, kTestTarget)), ElementsAre(0, 1));
  EXPECT_THAT(Trials(store_->BestRecords(large, "")), IsEmpty()) << "it would be the second one";
  // A second computation: whose it is is not known any more.
  const TaskRow task = {
      .index = 0, .workload_id = "3x3", .workload_key = kTestKey, .dag = "d", .target = "llvm"};
  ASSERT_OK(store_->AddTasks("j", {&task, 1}));
  EXPECT_THAT(Trials(store_->BestRecords(small, "")), ElementsAre(1));
  EXPECT_THAT(Trials(store_->BestRecords(large, "")), IsEmpty());
  EXPECT_THAT(Trials(store_->RecordsOfWorkload(small, "")), ElementsAre(1));
  EXPECT_THAT(Trials(store_->BestRecords({.keys = {kTestKey}}, "")), ElementsAre(1, 0));
}

// A record as an import makes it.
Record LoggedRecord(const char* key, uint32_t trial, double cost_s) {
  Record record = RecordOf("", "j", trial, cost_s);
  record.workload_key = key;
  record.device.clear();
  record.runner.clear();
  return record;
}

TEST_P(StoreTest, RecordsOfABoundKeyAreOfTheComputationOneByOne) {
  AddJob("j");
  constexpr const char kPool[] = "[\"pool\", 3]";
  Add(RecordOf("2x2", "j", 0, 1e-3));
  const int64_t fits = Add(LoggedRecord(kPool, 1, 2e-3));
  Add(LoggedRecord(kPool, 2, 1e-3));  // does not
  const int64_t other = Add(LoggedRecord("[\"pool\", 4]", 3, 1e-4));
  const Computation large = {.id = "3x3", .key = kPool, .dag = "text", .flop_count = 7};
  EXPECT_EQ(*store_->BoundTo(kPool), std::nullopt);
  ASSERT_OK(store_->BindKey(large));
  EXPECT_EQ(store_->BoundTo(kPool)->value().dag, "text");
  const int64_t wanted[] = {fits, other, 1};
  EXPECT_EQ(*store_->BindRecords(large, wanted), 1) << "of another key; of a computation already";
  EXPECT_EQ(*store_->BindRecords(large, wanted), 0);
  // The faster one that does not fit counts for nobody, though the key stands for one computation.
  EXPECT_THAT(Trials(store_->BestRecords({.id = "3x3"}, "")), ElementsAre(1));
  EXPECT_THAT(Trials(store_->BestRecords({.id = "3x3", .keys = {kPool}}, "")), ElementsAre(1));
  EXPECT_THAT(Trials(store_->BestRecords({.keys = {kPool}}, "")), ElementsAre(1, 2));
  ASSERT_OK_AND_ASSIGN(const auto bound, store_->RecordsOfWorkload({.id = "3x3"}, ""));
  ASSERT_EQ(bound.size(), 1u);
  EXPECT_EQ(bound[0].dag, "text");
  EXPECT_EQ(bound[0].flop_count, 7);
  EXPECT_EQ(bound[0].workload_id, "3x3");
  EXPECT_EQ(bound[0].workload_key, kPool);
  EXPECT_THAT(store_->BindKey({.id = "", .key = "k", .dag = "d"}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("needs an id, a key and a DAG")));
}

TEST_P(StoreTest, AKeyStandsForWhatItWasBoundToLast) {
  AddJob("j");
  constexpr const char kPool[] = "[\"pool\", 3]";
  Add(RecordOf("2x2", "j", 0, 5e-3));  // measured here: stays what it is
  const int64_t logged = Add(LoggedRecord(kPool, 1, 2e-3));
  const Computation first = {.id = "2x2", .key = kPool, .dag = "a"};
  const Computation second = {.id = "3x3", .key = kPool, .dag = "b"};
  for (const Computation& computation : {first, first, second}) {
    ASSERT_OK(store_->BindKey(computation));
    ASSERT_OK(store_->BindRecords(computation, {&logged, 1}));
  }
  EXPECT_THAT(Trials(store_->BestRecords({.id = "2x2"}, "")), ElementsAre(0));
  EXPECT_THAT(Trials(store_->BestRecords({.id = "3x3"}, "")), ElementsAre(1));
  EXPECT_THAT(Trials(store_->BestRecords({.keys = {kPool}}, "")), ElementsAre(1));
  EXPECT_EQ(store_->BoundTo(kPool)->value().id, "3x3");
}

// Computations that share one key share the others, too, also where the store has not heard of it.
TEST_P(StoreTest, AComputationIsFoundByEachOfItsKeys) {
  AddJob("j");
  Add(LoggedRecord("other key", 0, 1e-3));
  Add(RecordOf("2x2", "j", 1, 2e-3));
  const WorkloadRef small = {.id = "2x2", .keys = {kTestKey, "other key"}};
  EXPECT_THAT(Trials(store_->BestRecords(small, "")), ElementsAre(0));
  EXPECT_THAT(Trials(store_->BestRecords({.id = "2x2"}, "")), ElementsAre(1));
  EXPECT_THAT(Trials(store_->BestRecords({.keys = {"other key"}}, "")), ElementsAre(0));
  Add(RecordOf("3x3", "j", 2, 3e-3));
  EXPECT_THAT(Trials(store_->BestRecords(small, "")), ElementsAre(1));
  const WorkloadRef large = {.id = "3x3", .keys = {kTestKey, "other key"}};
  EXPECT_THAT(Trials(store_->BestRecords(large, "")), ElementsAre(2));
}

TEST_P(StoreTest, WhatALineOfALogSaysBesideIsKept) {
  AddJob("j");
  Record record = LoggedRecord(kTestKey, 0, 1e-3);
  record.target_host = "llvm -mcpu=core-avx2";
  record.layout_rewrite_option = 2;
  record.input_names = {"data", "we\"ight"};
  ASSERT_OK_AND_ASSIGN(const Record kept, store_->GetRecord(Add(record)));
  EXPECT_EQ(kept.target_host, record.target_host);
  EXPECT_EQ(kept.layout_rewrite_option, 2);
  EXPECT_EQ(kept.input_names, record.input_names);
}

TEST_P(StoreTest, ComputationsCanBeMadeKnown) {
  const Computation two[] = {{.id = "a", .key = kTestKey, .dag = "x"},
                             {.id = "b", .key = kTestKey, .dag = "y"}};
  ASSERT_OK(store_->AddComputations(two));
  ASSERT_OK(store_->AddComputations(two));
  ASSERT_OK_AND_ASSIGN(const auto known, store_->ComputationsOfKey(kTestKey));
  ASSERT_EQ(known.size(), 2u);
  EXPECT_EQ(known[1].id, "b");
  EXPECT_EQ(known[1].dag, "y");
  AddJob("j");
  Add(RecordOf("", "j", 0, 1e-3));
  EXPECT_THAT(Trials(store_->BestRecords({.id = "a"}, "")), IsEmpty());
}

TEST_P(StoreTest, AMeasurementOfAnotherComputationIsNotTheSame) {
  AddJob("j");
  const Record record = RecordOf("2x2", "j", 0, 1e-3);
  Add(record);
  const auto of = [&](const char* workload_id) {
    Record other = record;
    other.workload_id = workload_id;
    return store_->HasMeasurement(other);
  };
  EXPECT_TRUE(*of("2x2"));
  EXPECT_FALSE(*of("3x3"));
  EXPECT_TRUE(*of("")) << "a line has the key alone";
}

TEST_P(StoreTest, ProgressIsKept) {
  AddJob("j");
  EXPECT_EQ(store_->GetJob("j")->progress.ending, JobEnding::kNone);
  ASSERT_OK(store_->SetProgress("j", {JobEnding::kNone, 2.5}));
  ASSERT_OK(store_->SetProgress("j", {JobEnding::kTimeUsedUp, 7.25}));
  ASSERT_OK_AND_ASSIGN(const JobRow job, store_->GetJob("j"));
  EXPECT_EQ(job.progress.ending, JobEnding::kTimeUsedUp);
  EXPECT_EQ(job.progress.active_s, 7.25);
  EXPECT_THAT(store_->SetProgress("k", {}), StatusIs(StatusCode::kNotFound, HasSubstr("k")));
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
  add(TestRecord("j", 3, 4));  // on another device
  add(FailedRecord("j", 4, 5));
  EXPECT_EQ(Trial(store_->UnscheduledOfJob("j", 0)), 3);
  EXPECT_EQ(Trial(store_->UnscheduledOfJob("k", 0)), -1);
}

TEST_P(StoreTest, DeletedRecordsAreGone) {
  AddJob("j");
  std::vector<int64_t> ids;
  for (uint32_t trial = 0; trial < 4; ++trial) {
    ids.push_back(Add(TestRecord("j", trial, 1e-3 * (1 + trial))));
  }
  const std::vector<int64_t> gone = {ids[0], 99, ids[3]};
  EXPECT_EQ(*store_->DeleteRecords(gone), 2);
  EXPECT_EQ(*store_->DeleteRecords(gone), 0);
  EXPECT_THAT(store_->GetRecord(ids[3]), StatusIs(StatusCode::kNotFound, _));
  EXPECT_THAT(Trials(store_->RecordsOfJob("j", 0)), ElementsAre(1, 2));
  EXPECT_EQ(Best(kTest, ""), 1);
  EXPECT_EQ(store_->CountTrials("j")->total, 2);
  EXPECT_GT(Add(TestRecord("j", 3)), ids[3]) << "a number means one record for ever";
  const Finals finals = {.id = ids[1], .costs_s = {5e-3}};
  ASSERT_OK(store_->SetFinals({&finals, 1}));
  EXPECT_EQ(store_->GetRecord(ids[1])->final_costs_s, finals.costs_s);
}

TEST_P(StoreTest, RecordsOfAJobThatGoesOnAreNotDeleted) {
  AddJob("j");
  const int64_t id = Add(TestRecord("j", 0));
  EXPECT_THAT(DeleteRecordsOfEndedJobs(*store_, {&id, 1}).status(),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("of job j, which is queued")));
  ASSERT_OK(store_->UpdateJobState("j", JobState::kCancelled, "", 1));
  EXPECT_EQ(*DeleteRecordsOfEndedJobs(*store_, {&id, 1}), 1);
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
  EXPECT_THAT(Visited({.top = 2}), ElementsAre(4, 3));
  EXPECT_THAT(Visited({.include_errors = true, .top = 9}), ElementsAre(4, 3, 1, 0, 5, 2));
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

TEST_P(StoreTest, FinalReadingsDecideWhoIsBest) {
  AddJob("j");
  const int64_t lucky = Add(TestRecord("j", 0, 1e-3));
  const int64_t steady = Add(TestRecord("j", 1, 1.1e-3));
  const int64_t wrong = Add(TestRecord("j", 2, 0.5e-3));
  const std::vector<double> slow = {1.3e-3, 1.2e-3, 9e-3}, quick = {1.1e-3, 1.12e-3};
  const std::vector<Finals> finals = {
      {.id = lucky, .costs_s = slow, .confidence_s = 1e-4, .run_s = 0.5},
      {.id = steady,
       .costs_s = quick,
       .confidence_s = 2e-5,
       .readings = 37,
       .run_s = 0.25,
       .device = "GPU-1"},
      {.id = wrong, .run_s = 0.125, .error = 5, .message = "measured again: element 3"}};
  ASSERT_OK(store_->SetFinals(finals));
  ASSERT_OK_AND_ASSIGN(const auto best, store_->BestOfJob("j", 0));
  EXPECT_EQ(best->id, steady);
  EXPECT_EQ(best->final_costs_s, quick);
  EXPECT_EQ(best->confidence_s, 2e-5);
  EXPECT_EQ(best->final_readings, 37u);
  EXPECT_EQ(best->final_run_s, 0.25);
  EXPECT_EQ(best->final_device, "GPU-1");
  EXPECT_EQ(store_->CountTrials("j")->final_run_s, 0.875);
  EXPECT_EQ(best->costs_s, std::vector<double>{1.1e-3});
  EXPECT_DOUBLE_EQ(Cost(*best), 1.11e-3);
  ASSERT_OK_AND_ASSIGN(const Record failed, store_->GetRecord(wrong));
  EXPECT_EQ(failed.error, 5);
  EXPECT_TRUE(failed.costs_s.empty());
  EXPECT_EQ(failed.message, "measured again: element 3");
  // A third one, measured once, would have to beat the medians.
  Add(TestRecord("j", 3, 1.15e-3));
  EXPECT_EQ((*store_->BestOfJob("j", 0))->id, steady);
  EXPECT_EQ(store_->BestRecords(kTest, kTestTarget)->front().id, steady);
  // All or nothing.
  std::vector<Finals> again = {{.id = lucky, .costs_s = quick}, {.id = 99, .costs_s = quick}};
  EXPECT_THAT(store_->SetFinals(again), StatusIs(StatusCode::kNotFound, _));
  again = {{.id = lucky, .costs_s = quick}, {.id = steady, .costs_s = {-1}}};
  EXPECT_THAT(store_->SetFinals(again),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("final cost -1 s")));
  EXPECT_EQ(store_->GetRecord(lucky)->final_costs_s, slow);
  // What failed stays failed.
  again = {{.id = wrong, .costs_s = quick, .run_s = 1}};
  ASSERT_OK(store_->SetFinals(again));
  EXPECT_EQ(store_->GetRecord(wrong)->error, 5);
  EXPECT_TRUE(store_->GetRecord(wrong)->final_costs_s.empty());
}

TEST_P(StoreTest, RoundsAreNumberedPerJob) {
  AddJob("j");
  AddJob("k");
  RoundRow row;
  row.job_id = "j";
  row.task_index = 2;
  row.elapsed_s = 1.5;
  row.trials = 64;
  row.best_s = {1e-3, 0, 1.0 / 3};
  row.search_s = 0.25;
  row.report = "64 of 2048";
  EXPECT_EQ(*store_->AddRound(row), 0u);
  row.total_latency_s = 0.5;
  EXPECT_EQ(*store_->AddRound(row), 1u);
  row.job_id = "k";
  EXPECT_EQ(*store_->AddRound(row), 0u);
  ASSERT_OK_AND_ASSIGN(const std::vector<RoundRow> rounds, store_->RoundsOfJob("j", 0));
  ASSERT_EQ(rounds.size(), 2u);
  EXPECT_TRUE(std::isnan(rounds[0].total_latency_s));
  EXPECT_EQ(rounds[1].number, 1u);
  EXPECT_EQ(rounds[1].task_index, 2u);
  EXPECT_EQ(rounds[1].elapsed_s, 1.5);
  EXPECT_EQ(rounds[1].trials, 64u);
  EXPECT_EQ(rounds[1].total_latency_s, 0.5);
  EXPECT_EQ(rounds[1].best_s, row.best_s);
  EXPECT_EQ(rounds[1].search_s, 0.25);
  EXPECT_EQ(rounds[1].report, "64 of 2048");
  EXPECT_EQ(store_->RoundsOfJob("j", 1)->size(), 1u);
  EXPECT_EQ(store_->RoundsOfJob("nobody", 0)->size(), 0u);
  row.job_id = "nobody";
  EXPECT_THAT(store_->AddRound(row), StatusIs(StatusCode::kNotFound, _));
}

TEST_P(StoreTest, KeepsOneCalibrationOfEachDevice) {
  EXPECT_EQ(store_->Calibrations()->size(), 0u);
  CalibrationRow row{.device = "GPU b",
                     .compute_capability = 90,
                     .constants = "launch_s=1",
                     .fitted_s = 17,
                     .report = "well"};
  ASSERT_OK(store_->SetCalibration(row));
  CalibrationRow other = row;
  other.compute_capability = 80;
  ASSERT_OK(store_->SetCalibration(other));
  row.constants = "launch_s=2";
  ASSERT_OK(store_->SetCalibration(row));
  EXPECT_EQ(*store_->Calibrations(), (std::vector<CalibrationRow>{other, row}));
  row.constants.clear();
  EXPECT_THAT(store_->SetCalibration(row), StatusIs(StatusCode::kInvalidArgument, _));
  row.device.clear();
  EXPECT_THAT(store_->SetCalibration(row), StatusIs(StatusCode::kInvalidArgument, _));
}

// Records of one device have one text of it; one that is not known stays so.
TEST_P(StoreTest, RecordsKeepTheirDevice) {
  AddJob("j");
  Record of_none = TestRecord("j", 2), of_other = TestRecord("j", 3);
  of_none.device_model.clear();
  of_other.device_model = "cores=4 name=a CPU";
  ASSERT_OK(store_->AddRecords(
      std::vector<Record>{TestRecord("j", 0), TestRecord("j", 1), of_none, of_other}));
  std::vector<std::string> models;
  const std::vector<Record> records = *store_->RecordsOfJob("j", 0);
  for (const Record& record : records) models.push_back(record.device_model);
  const std::string usual = TestRecord("j", 0).device_model;
  EXPECT_THAT(models, testing::ElementsAre(usual, usual, "", "cores=4 name=a CPU"));
}

TEST_P(StoreTest, EachSchedulerIsANewIncarnationOfTheSame) {
  ASSERT_OK_AND_ASSIGN(const SchedulerIdentity first, store_->NextIncarnation());
  ASSERT_OK_AND_ASSIGN(const SchedulerIdentity second, store_->NextIncarnation());
  EXPECT_FALSE(first.id.empty());
  EXPECT_EQ(first.id, second.id);
  EXPECT_LT(first.incarnation, second.incarnation);
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

// Any order of random records gives the answers of a sort with BetterThan().
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
}

TEST_P(StoreTest, ThreadsShareIt) {
  AddJob("j");
  constexpr uint32_t kTrials = 40;
  std::atomic<int> added = 0;
  std::atomic<int> refused = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t trial = 0; trial < kTrials; ++trial) {
        const Status status = store_->AddRecord(TestRecord("j", trial, 1.0 + t)).status();
        ++(status.ok() ? added : refused);
        EXPECT_TRUE(status.ok() || status.code() == StatusCode::kAlreadyExists) << status;
        EXPECT_OK(store_->BestRecords(kTest, ""));
        EXPECT_OK(store_->CountTrials("j"));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(added, static_cast<int>(kTrials));
  EXPECT_EQ(refused, static_cast<int>(3 * kTrials));
  EXPECT_EQ(Trials(store_->RecordsOfJob("j", 0)).size(), kTrials);
}

}  // namespace
}  // namespace kiln::store
