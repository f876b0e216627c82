#include "scheduler/words/job_estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/job_defaults.h"
#include "scheduler/words/job_queue.h"

namespace kiln {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::Optional;

v1::JobStatus Job(const std::string& id, v1::JobState state, uint32_t trials = 100) {
  v1::JobStatus job;
  job.set_id(id);
  job.set_state(state);
  job.mutable_spec()->mutable_options()->set_trials(trials);
  return job;
}

// Returns a job that has done `done` of `trials`, at `rate` a second.
v1::JobStatus Running(const std::string& id, uint32_t done, uint32_t trials, double rate) {
  v1::JobStatus job = Job(id, v1::RUNNING, trials);
  job.set_trials_done(done);
  job.set_trials_per_s_last_minute(rate);
  return job;
}

v1::JobStatus Queued(const std::string& id, int32_t priority, uint32_t trials = 100) {
  v1::JobStatus job = Job(id, v1::QUEUED, trials);
  job.mutable_spec()->set_priority(priority);
  return job;
}

std::vector<std::string> Ids(const std::vector<const v1::JobStatus*>& jobs) {
  std::vector<std::string> ids;
  for (const v1::JobStatus* const job : jobs) ids.push_back(job->id());
  return ids;
}

TEST(JobQueueTest, HigherPrioritiesAndOlderJobsAreBefore) {
  v1::JobStatus served = Queued("served", 9);
  served.mutable_spec()->mutable_served()->set_objective(true);
  served.set_phase("waits for the process");
  v1::JobStatus joins = Queued("joins", 9);
  joins.add_tasks()->set_tuned_by_job("runs");
  const std::vector<v1::JobStatus> all = {
      Queued("new", 1),         Queued("it", 0),    Queued("old", 0),
      Queued("low", -1),        Queued("older", 0), served,
      Running("runs", 0, 1, 0), Queued("first", 1), joins};
  EXPECT_THAT(Ids(JobsBefore(all[1], all)), ElementsAre("first", "new", "older", "old"));
  EXPECT_THAT(Ids(JobsBefore(all[7], all)), ElementsAre());
  EXPECT_THAT(Ids(RunningJobs(all)), ElementsAre("runs"));
  EXPECT_TRUE(WaitsForResults(joins));
  EXPECT_FALSE(WaitsForTurn(joins));
  EXPECT_TRUE(WaitsForProcess(served));
  served.clear_phase();
  EXPECT_TRUE(WaitsForTurn(served));
}

TEST(JobEstimateTest, TrialsThatAreLeftAtThePaceOfNow) {
  EXPECT_THAT(SecondsToEnd(Running("a", 40, 100, 2)), Optional(DoubleNear(30, 1e-9)));
}

TEST(JobEstimateTest, TheTimeIfItEndsFirst) {
  v1::JobStatus job = Running("a", 40, 100, 2);
  job.set_elapsed_s(50);
  job.mutable_spec()->mutable_options()->set_time_budget_s(60);
  EXPECT_THAT(SecondsToEnd(job), Optional(DoubleNear(10, 1e-9)));
  job.mutable_spec()->mutable_options()->set_time_budget_s(600);
  EXPECT_THAT(SecondsToEnd(job), Optional(DoubleNear(30, 1e-9)));
  // The budget alone.
  job.clear_trials_per_s_last_minute();
  EXPECT_THAT(SecondsToEnd(job), Optional(DoubleNear(550, 1e-9)));
  // Time spent waiting does not count, so the job may be older than its budget.
  job.set_elapsed_s(700);
  EXPECT_THAT(SecondsToEnd(job), Optional(DoubleNear(0, 1e-9)));
}

TEST(JobEstimateTest, NoGroundNoEstimate) {
  EXPECT_EQ(SecondsToEnd(Running("a", 0, 100, 0)), std::nullopt) << "no pace";
  EXPECT_EQ(SecondsToEnd(Running("a", 10, kMaxTrials, 2)), std::nullopt) << "no limit";
  EXPECT_EQ(SecondsToEnd(Running("a", 100, 100, 2)), std::nullopt) << "all trials are done";
  EXPECT_EQ(SecondsToEnd(Job("a", v1::QUEUED)), std::nullopt);
  v1::JobStatus job = Running("a", 40, 100, 2);
  job.set_waiting_for_workers(1);
  EXPECT_EQ(SecondsToEnd(job), std::nullopt);
  job = Running("a", 40, 100, 2);
  job.set_phase("measuring the 8 best candidates again");
  EXPECT_EQ(SecondsToEnd(job), std::nullopt);
  job.set_phase("about 12.34 ms (15 of 24 tasks are estimates)");
  EXPECT_NE(SecondsToEnd(job), std::nullopt) << "the job still searches";
  job.set_ending(v1::NO_IMPROVEMENT);
  EXPECT_EQ(SecondsToEnd(job), std::nullopt);
}

TEST(JobEstimateTest, AQueuedJobStartsWhenAPlaceIsFree) {
  // Two places, free in 30 s and in 50 s.
  const std::vector<v1::JobStatus> all = {Queued("third", 0), Queued("second", 0, 40),
                                          Queued("first", 0, 80), Running("a", 40, 100, 2),
                                          Running("b", 0, 100, 2)};
  EXPECT_THAT(SecondsToStart(all[2], all), Optional(DoubleNear(30, 1e-9)));
  // The first one takes the place of a until 30 + 40 s.
  EXPECT_THAT(SecondsToStart(all[1], all), Optional(DoubleNear(50, 1e-9)));
  // The second one takes the place of b until 50 + 20 s.
  EXPECT_THAT(SecondsToStart(all[0], all), Optional(DoubleNear(70, 1e-9)));
  EXPECT_EQ(SecondsToStart(all[3], all), std::nullopt) << "it runs";
}

TEST(JobEstimateTest, AStartThatHangsOnAnUnknownEndHasNoEstimate) {
  std::vector<v1::JobStatus> all = {Queued("it", 0), Running("a", 0, 100, 0)};
  EXPECT_EQ(SecondsToStart(all[0], all), std::nullopt);
  // A place of a job whose end is not known stays taken; the other one becomes free.
  all.push_back(Running("b", 0, 100, 2));
  EXPECT_THAT(SecondsToStart(all[0], all), Optional(DoubleNear(50, 1e-9)));
  all = {Queued("it", 0)};
  EXPECT_EQ(SecondsToStart(all[0], all), std::nullopt) << "nothing runs, and it waits";
}

TEST(JobEstimateTest, ADeviceIsFreeWhenAJobOfHigherPriorityEnds) {
  v1::JobStatus job = Job("it", v1::RUNNING);
  job.set_waiting_for_workers(1);
  v1::JobStatus urgent = Running("a", 40, 100, 2), equal = urgent;
  urgent.mutable_spec()->set_priority(1);
  EXPECT_THAT(SecondsToDevice(job, {&urgent}), Optional(DoubleNear(30, 1e-9)));
  EXPECT_EQ(SecondsToDevice(job, {&urgent, &equal}), std::nullopt) << "devices go in turns";
  EXPECT_EQ(SecondsToDevice(job, {}), std::nullopt);
}

TEST(JobEstimateTest, Words) {
  EXPECT_EQ(EndsText(std::nullopt), "");
  EXPECT_EQ(StartsText(std::nullopt), "");
  EXPECT_EQ(EndsText(0), "ends in a few seconds");
  EXPECT_EQ(EndsText(42), "ends in about 40 s");
  EXPECT_EQ(EndsText(715), "ends in about 12 min");
  EXPECT_EQ(StartsText(3 * 3600), "starts in about 3 h");
  EXPECT_EQ(StartsText(3 * 86400), "starts in about 3 days");
}

}  // namespace
}  // namespace kiln
