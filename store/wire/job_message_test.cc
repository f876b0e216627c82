#include "store/wire/job_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/status_testing.h"
#include "rpc/fields_testing.h"
#include "store/memory_store.h"
#include "store/record_testing.h"

namespace kiln::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr int64_t kStartMs = 1'700'000'010'000;

JobRow FullJob() {
  JobRow job;
  auto& [id, name, user, priority, trials, state, message, spec, created_ms, started_ms,
         finished_ms, progress, fruitless_runs] = job;
  id = "job";
  name = "name";
  user = "user";
  priority = 3;
  // The message has it in the spec.
  trials = 64;
  state = JobState::kFailed;
  message = "why";
  spec = "not looked at";
  created_ms = 1'700'000'000'000;
  started_ms = kStartMs;
  finished_ms = kStartMs + 15'000;
  progress = {JobEnding::kNoImprovement, 12.5};
  // No client needs this field.
  fruitless_runs = 1;
  return job;
}

// A new field of the row breaks the build here; test then what becomes of it.
TaskRow FullTask() {
  TaskRow task;
  auto& [job_id, index, workload_id, workload_key, dag, target, weight, description, flop_count,
         reference_cost_s, alternative_of, variant, preparation, network, known_job, known_trials] =
      task;
  job_id = "job";
  index = 0;
  workload_id = kTestId;
  workload_key = kTestKey;
  dag = "dag";
  target = kTestTarget;
  weight = 2;
  description = "op";
  flop_count = 1e9;
  reference_cost_s = 0.5;
  alternative_of = 0;
  variant = "direct";
  preparation = "p";
  network = "n";
  // ATaskWithTrialsOfAnotherJob has them.
  known_job = "";
  known_trials = 0;
  return task;
}

RoundRow FullRound() {
  RoundRow round;
  auto& [job_id, number, task_index, elapsed_s, trials, total_latency_s, best_s, search_s, report] =
      round;
  job_id = "job";
  number = 1;
  task_index = 2;
  elapsed_s = 3.5;
  trials = 4;
  total_latency_s = 5.5;
  best_s = {6.5, std::nullopt};
  search_s = 7.5;
  report = "report";
  return round;
}

class JobMessageTest : public testing::Test {
 protected:
  // Adds two trials, one of them a finalist, a third that failed, and the unscheduled loops.
  void SetUp() override {
    const TaskRow task = FullTask();
    ASSERT_OK(store_->AddJob(FullJob(), {&task, 1}));
    ASSERT_OK(store_->AddRecord(TestRecord("job", 0, 2e-3)));
    ASSERT_OK_AND_ASSIGN(best_id_, store_->AddRecord(TestRecord("job", 1, 1e-3)));
    ASSERT_OK(store_->AddRecord(FailedRecord("job", 2, v1::WRONG_ANSWER_ERROR)));
    Record unscheduled = TestRecord("job", 3, 4e-3);
    unscheduled.steps = kNoSteps;
    unscheduled.message = "timed in one call";
    ASSERT_OK_AND_ASSIGN(unscheduled_id_, store_->AddRecord(unscheduled));
    ASSERT_OK(store_->SetRemeasurements({{{.id = best_id_,
                                           .costs_s = {1e-3},
                                           .confidence_s = 1e-5,
                                           .readings = 1,
                                           .run_s = 0.75}}}));
  }

  StatusOr<v1::JobStatus> Status() {
    return JobStatusMessage(*store_, FullJob(), v1::JobSpec(), kStartMs + 60'000);
  }

  const std::unique_ptr<Store> store_ = NewMemoryStore();
  int64_t best_id_ = 0, unscheduled_id_ = 0;
};

TEST_F(JobMessageTest, TheJobsRow) {
  ASSERT_OK_AND_ASSIGN(const v1::JobStatus status, Status());
  // The store does not know these fields.
  EXPECT_THAT(UnsetFields(status),
              UnorderedElementsAre("waiting_for_workers", "device", "busy_share_last_minute",
                                   "trials_per_s_last_minute", "next_task",
                                   "elites_share_last_minute", "phase", "notices"));
  EXPECT_EQ(status.id(), "job");
  EXPECT_EQ(status.spec().name(), "name");
  EXPECT_EQ(status.spec().user(), "user");
  EXPECT_EQ(status.spec().priority(), 3);
  EXPECT_EQ(status.state(), v1::FAILED);
  EXPECT_EQ(status.message(), "why");
  EXPECT_EQ(status.ending(), v1::NO_IMPROVEMENT);
  EXPECT_EQ(status.created_s(), 1'700'000'000);
  EXPECT_EQ(status.elapsed_s(), 15);
}

// The other job has the task at another place.
TEST_F(JobMessageTest, ATaskWithTrialsOfAnotherJob) {
  JobRow asking;
  asking.id = "asking";
  TaskRow other = FullTask(), task = FullTask();
  other.job_id = task.job_id = "";
  other.workload_id = "another";
  other.known_job = task.known_job = "job";
  task.index = 1;
  task.known_trials = 4;
  ASSERT_OK(store_->AddJob(asking, std::vector<TaskRow>{other, task}));
  ASSERT_OK_AND_ASSIGN(v1::JobStatus status,
                       JobStatusMessage(*store_, asking, v1::JobSpec(), kStartMs));
  EXPECT_EQ(status.trials_done(), 0u);
  EXPECT_EQ(status.tasks(0).best_record_id(), 0) << "the job has no such task";
  const v1::TaskStatus known = status.tasks(1);
  EXPECT_EQ(known.trials(), 0u);
  EXPECT_EQ(known.known_states(), 4u);
  EXPECT_EQ(known.known_record_id(), best_id_);
  EXPECT_EQ(known.known_cost_s(), 1e-3);
  EXPECT_EQ(known.best_record_id(), best_id_);
  EXPECT_EQ(known.best_cost_s(), 1e-3);
  EXPECT_EQ(known.reference_record_id(), unscheduled_id_);
  // A better record of its own counts.
  Record own = TestRecord("asking", 0, 0.5e-3);
  own.task_index = 1;
  ASSERT_OK_AND_ASSIGN(const int64_t id, store_->AddRecord(own));
  ASSERT_OK_AND_ASSIGN(status, JobStatusMessage(*store_, asking, v1::JobSpec(), kStartMs));
  EXPECT_EQ(status.tasks(1).best_record_id(), id);
  EXPECT_EQ(status.tasks(1).known_record_id(), best_id_);
}

TEST_F(JobMessageTest, AJobThatIsCancelledEndedByThat) {
  JobRow job = FullJob();
  job.state = JobState::kCancelled;
  ASSERT_OK_AND_ASSIGN(const v1::JobStatus status,
                       JobStatusMessage(*store_, job, v1::JobSpec(), kStartMs));
  EXPECT_EQ(status.ending(), v1::CANCELLED_BY_REQUEST);
}

TEST_F(JobMessageTest, TheTrials) {
  ASSERT_OK_AND_ASSIGN(const v1::JobStatus status, Status());
  EXPECT_EQ(status.trials_done(), 4u);
  EXPECT_EQ(status.devices(), 1u);
  EXPECT_DOUBLE_EQ(status.busy_share(), (4 * 0.25 + 0.75) / 15);
  EXPECT_DOUBLE_EQ(status.elites_share(), 0.75 / 15);
  ASSERT_EQ(status.error_counts().size(), 1u);
  EXPECT_EQ(status.error_counts().at(v1::WRONG_ANSWER_ERROR), 1u);
}

TEST_F(JobMessageTest, TheTasks) {
  ASSERT_OK_AND_ASSIGN(const v1::JobStatus status, Status());
  ASSERT_EQ(status.tasks_size(), 1);
  const v1::TaskStatus& task = status.tasks(0);
  // Only a running job has these fields.
  EXPECT_THAT(UnsetFields(task),
              ElementsAre("known_states", "known_cost_s", "known_record_id", "tuned_by_job"));
  EXPECT_EQ(task.workload_id(), kTestId);
  EXPECT_EQ(task.workload_key(), kTestKey);
  EXPECT_EQ(task.flop_count(), 1e9);
  EXPECT_EQ(task.trials(), 4u);
  EXPECT_EQ(task.best_cost_s(), 1e-3);
  EXPECT_EQ(task.reference_cost_s(), 4e-3) << "as candidates are read, not the reference's run";
  EXPECT_EQ(task.reference_record_id(), unscheduled_id_);
  EXPECT_EQ(task.reference_message(), "timed in one call");
  EXPECT_EQ(task.best_record_id(), best_id_);
  const v1::TaskSpec& spec = task.spec();
  EXPECT_THAT(UnsetFields(spec), IsEmpty());
  EXPECT_EQ(spec.dag(), "dag");
  EXPECT_EQ(spec.target(), kTestTarget);
  EXPECT_EQ(spec.weight(), 2);
  EXPECT_EQ(spec.description(), "op");
  EXPECT_EQ(spec.alternative_of(), 0u);
  EXPECT_EQ(spec.variant(), "direct");
  EXPECT_EQ(spec.preparation(), "p");
  EXPECT_EQ(spec.network(), "n");
}

TEST_F(JobMessageTest, TheTimeOfAJobThatRunsGoesOn) {
  JobRow job = FullJob();
  job.finished_ms.reset();
  const auto elapsed_s = [&](int64_t now_ms) {
    const auto status = JobStatusMessage(*store_, job, v1::JobSpec(), now_ms);
    return status.ok() ? status->elapsed_s() : -1;
  };
  EXPECT_EQ(elapsed_s(kStartMs + 2'500), 2.5);
  // The clock was set back.
  EXPECT_EQ(elapsed_s(kStartMs - 1), 0);
  job.started_ms.reset();
  EXPECT_EQ(elapsed_s(kStartMs), 0);
}

TEST(RoundMessageTest, AllOfIt) {
  const v1::Round message = RoundMessage(FullRound());
  EXPECT_THAT(UnsetFields(message), IsEmpty());
  EXPECT_EQ(message.number(), 1u);
  EXPECT_EQ(message.task_index(), 2u);
  EXPECT_EQ(message.elapsed_s(), 3.5);
  EXPECT_EQ(message.trials(), 4u);
  EXPECT_EQ(message.total_latency_s(), 5.5);
  EXPECT_THAT(message.best_s(), ElementsAre(6.5, 0));
  EXPECT_EQ(message.search_s(), 7.5);
  EXPECT_EQ(message.report(), "report");
}

TEST(RoundMessageTest, NoLatencyYet) {
  RoundRow row = FullRound();
  for (const std::optional<double> none :
       {std::optional<double>(), std::optional(std::numeric_limits<double>::infinity())}) {
    row.total_latency_s = none;
    EXPECT_THAT(UnsetFields(RoundMessage(row)), ElementsAre("total_latency_s"));
  }
}

}  // namespace
}  // namespace kiln::store
