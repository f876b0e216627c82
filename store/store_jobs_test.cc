// The conformance suite, jobs: what every Store does with jobs, tasks, rounds and calibrations.
#include <string>
#include <vector>

#include "base/status_testing.h"
#include "store/record_testing.h"
#include "store/store_testing.h"

namespace kiln::store {
namespace {

using testing::_;
using testing::HasSubstr;
using testing::IsEmpty;

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
  EXPECT_THAT(store_->SetKnownTask("j1", 3, "k", 1), StatusIs(StatusCode::kNotFound, testing::_));
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
  EXPECT_EQ(ids(store_->ListJobs(std::nullopt)), "dbac");
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
              .variant = "winograd",
              .preparation = "p1 = weights",
              .network = "net",
              .known_job = "one more",
              .known_trials = 7};
  tasks[1] = {.job_id = "j", .index = 0, .workload_key = "k0", .dag = "", .target = "null"};
  ASSERT_OK(store_->AddJob(job, tasks));
  ASSERT_OK(store_->SetReferenceCost("j", 0, 0.125));
  ASSERT_OK(store_->SetKnownTask("j", 0, "other", 64));
  ASSERT_OK_AND_ASSIGN(const std::vector<TaskRow> found, store_->TasksOfJob("j"));
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(found[0].index, 0);
  EXPECT_EQ(found[0].dag, "");
  EXPECT_EQ(found[0].reference_cost_s, 0.125);
  EXPECT_EQ(found[0].known_job, "other");
  EXPECT_EQ(found[0].known_trials, 64u);
  EXPECT_EQ(found[1].known_job, "one more") << "as it was added";
  EXPECT_EQ(found[1].known_trials, 7u);
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
  EXPECT_EQ(found[1].variant, "winograd");
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

// The process of the job dies again and again.
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
    EXPECT_FALSE(job.finished_ms.has_value());
    EXPECT_EQ(job.fruitless_runs, 0);
  }
  AddJob("done");
  ASSERT_OK(store_->UpdateJobState("done", JobState::kSucceeded, "", 7));
  EXPECT_THAT(store_->ReopenJob("done"), StatusIs(StatusCode::kFailedPrecondition, testing::_));
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

TEST_P(StoreTest, RoundsAreNumberedPerJob) {
  AddJob("j");
  AddJob("k");
  RoundRow row;
  row.job_id = "j";
  row.task_index = 2;
  row.elapsed_s = 1.5;
  row.trials = 64;
  row.best_s = {1e-3, std::nullopt, 1.0 / 3};
  row.search_s = 0.25;
  row.report = "64 of 2048";
  EXPECT_EQ(*store_->AddRound(row), 0u);
  row.total_latency_s = 0.5;
  EXPECT_EQ(*store_->AddRound(row), 1u);
  row.job_id = "k";
  EXPECT_EQ(*store_->AddRound(row), 0u);
  ASSERT_OK_AND_ASSIGN(const std::vector<RoundRow> rounds, store_->RoundsOfJob("j", 0));
  ASSERT_EQ(rounds.size(), 2u);
  EXPECT_FALSE(rounds[0].total_latency_s.has_value());
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

TEST_P(StoreTest, KeepsModelsUnderTheirNames) {
  EXPECT_EQ(store_->Models()->size(), 0u);
  ModelRow row{.name = "resnet-h200_2.kcm",
               .created_s = 17,
               .info = "{\"kind\": \"xgb\"}",
               .file = std::string("\0\xff bytes", 8)};
  ASSERT_OK(store_->AddModel(row));
  ASSERT_OK(store_->AddModel({.name = "a", .file = "b"}));
  // Adds the same model again.
  ASSERT_OK(store_->AddModel(row));
  row.bytes = 8;
  EXPECT_EQ(*store_->GetModel(row.name), row);
  ASSERT_OK_AND_ASSIGN(const std::vector<ModelRow> all, store_->Models());
  ModelRow listed = row;
  listed.file.clear();
  EXPECT_EQ(all, (std::vector<ModelRow>{{.name = "a", .bytes = 1}, listed}));
  ModelRow other = row;
  other.file.back() = 'z';
  EXPECT_THAT(store_->AddModel(other), StatusIs(StatusCode::kAlreadyExists, HasSubstr("another")));
  EXPECT_EQ(*store_->GetModel(row.name), row);
  ASSERT_OK(store_->AddModel(other, /*replace=*/true));
  EXPECT_EQ(*store_->GetModel(row.name), other);
  ASSERT_OK(store_->DeleteModel(row.name));
  EXPECT_THAT(store_->DeleteModel(row.name), StatusIs(StatusCode::kNotFound, HasSubstr(row.name)));
  EXPECT_THAT(store_->GetModel(row.name), StatusIs(StatusCode::kNotFound, HasSubstr(row.name)));
  ASSERT_OK(store_->AddModel(other));
  for (const char* name : {"", "a b", "a/b", "\xc3\xbc"}) {
    EXPECT_THAT(store_->AddModel({.name = name, .file = "b"}),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("1 to 128 letters")))
        << name;
  }
  EXPECT_THAT(store_->AddModel({.name = "c"}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("no bytes")));
}

TEST_P(StoreTest, KeepsOneScheduleForAComputationOnATarget) {
  EXPECT_EQ(store_->PinnedSchedules("")->size(), 0u);
  PinnedSchedule one{.workload_id = "w", .target = "llvm", .steps = "[]", .pinned_s = 5};
  PinnedSchedule two{.workload_id = "v", .target = "llvm", .steps = "[1]", .pinned_s = 6};
  ASSERT_OK(store_->PinSchedule(one));
  ASSERT_OK(store_->PinSchedule(two));
  one.steps = "[2]";
  ASSERT_OK(store_->PinSchedule(one));
  PinnedSchedule gpu = one;
  gpu.target = "cuda";
  ASSERT_OK(store_->PinSchedule(gpu));
  EXPECT_EQ(*store_->PinnedSchedules(""), (std::vector<PinnedSchedule>{two, gpu, one}));
  EXPECT_EQ(*store_->PinnedSchedules("w"), (std::vector<PinnedSchedule>{gpu, one}));
  EXPECT_TRUE(*store_->UnpinSchedule("w", "cuda"));
  EXPECT_FALSE(*store_->UnpinSchedule("w", "cuda"));
  EXPECT_EQ(*store_->PinnedSchedules("w"), std::vector<PinnedSchedule>{one});
  for (std::string PinnedSchedule::* field :
       {&PinnedSchedule::workload_id, &PinnedSchedule::target, &PinnedSchedule::steps}) {
    PinnedSchedule less = one;
    (less.*field).clear();
    EXPECT_THAT(store_->PinSchedule(less), StatusIs(StatusCode::kInvalidArgument, _));
  }
}

TEST_P(StoreTest, EachSchedulerIsANewIncarnationOfTheSame) {
  ASSERT_OK_AND_ASSIGN(const SchedulerIdentity first, store_->NextIncarnation());
  ASSERT_OK_AND_ASSIGN(const SchedulerIdentity second, store_->NextIncarnation());
  EXPECT_FALSE(first.id.empty());
  EXPECT_EQ(first.id, second.id);
  EXPECT_LT(first.incarnation, second.incarnation);
}

}  // namespace
}  // namespace kiln::store
