#include "scheduler/counted_store.h"

#include "base/status_testing.h"
#include "proto/trial.pb.h"
#include "store/faulty_store_testing.h"
#include "store/memory_store.h"
#include "store/record_testing.h"

namespace kiln::scheduler {
namespace {

using store::FailedRecord;
using store::JobState;
using store::TestRecord;
using testing::HasSubstr;
using testing::Not;

class CountedStoreTest : public testing::Test {
 protected:
  void AddJob(const std::string& id, const std::string& user) {
    store::JobRow job;
    job.id = id;
    job.user = user;
    ASSERT_OK(store_.AddJob(job));
  }
  void SetState(const std::string& id, JobState state) {
    ASSERT_OK(store_.UpdateJobState(id, state, "", 1));
  }
  void Expect(const std::string& line) { EXPECT_THAT(metrics_.Text(), HasSubstr(line + "\n")); }

  FakeClock clock_;
  Metrics metrics_;
  const std::unique_ptr<store::Store> memory_ = store::NewMemoryStore();
  store::FaultyStore faulty_{*memory_};
  CountedStore store_{faulty_, metrics_, clock_};
};

TEST_F(CountedStoreTest, CountsJobsByState) {
  Expect("kiln_jobs{state=\"queued\"} 0");
  AddJob("a", "ann");
  AddJob("b", "ann");
  AddJob("c", "bob");
  SetState("a", JobState::kRunning);
  SetState("b", JobState::kPaused);
  Expect("kiln_jobs{state=\"queued\"} 1");
  Expect("kiln_jobs{state=\"running\"} 1");
  Expect("kiln_jobs{state=\"paused\"} 1");
  SetState("a", JobState::kSucceeded);
  // Saying so twice ends no second job.
  SetState("a", JobState::kSucceeded);
  SetState("b", JobState::kCancelled);
  Expect("kiln_jobs{state=\"running\"} 0");
  Expect("kiln_jobs_ended_total{state=\"succeeded\"} 1");
  Expect("kiln_jobs_ended_total{state=\"cancelled\"} 1");
  Expect("kiln_jobs_ended_total{state=\"failed\"} 0");
  ASSERT_OK(store_.ReopenJob("b"));
  Expect("kiln_jobs{state=\"queued\"} 2");
  EXPECT_FALSE(store_.UpdateJobState("none", JobState::kFailed, "", 1).ok());
  Expect("kiln_jobs_ended_total{state=\"failed\"} 0");
}

TEST_F(CountedStoreTest, LearnsTheJobsOfAnEarlierProcess) {
  store::JobRow job;
  job.id = "old";
  ASSERT_OK(memory_->AddJob(job, {}));
  Expect("kiln_jobs{state=\"queued\"} 0");
  ASSERT_OK(store_.LoadUnfinishedJobs());
  Expect("kiln_jobs{state=\"queued\"} 1");
}

TEST_F(CountedStoreTest, CountsTrialsByTargetAndResult) {
  AddJob("a", "ann");
  std::vector<store::Record> records = {TestRecord("a", 0), TestRecord("a", 1),
                                        FailedRecord("a", 2, v1::WRONG_ANSWER_ERROR),
                                        FailedRecord("a", 3, v1::COMPILE_HOST_ERROR)};
  v1::TrialTimes times;
  times.set_build_wait_s(2);
  times.set_run_wait_s(4);
  for (store::Record& record : records) record.times = times.SerializeAsString();
  // It did not come to a runner.
  records[3].runner.clear();
  ASSERT_OK(store_.AddRecords(records));
  Expect("kiln_trials_total{error=\"NO_ERROR\",target=\"cuda\"} 2");
  Expect("kiln_trials_total{error=\"WRONG_ANSWER_ERROR\",target=\"cuda\"} 1");
  Expect("kiln_trials_total{error=\"COMPILE_HOST_ERROR\",target=\"cuda\"} 1");
  Expect("kiln_trials_total{error=\"RUN_TIMEOUT_ERROR\",target=\"cuda\"} 0");
  Expect("kiln_trial_build_seconds_count 4");
  Expect("kiln_trial_build_seconds_sum 2");
  Expect("kiln_trial_build_wait_seconds_sum 8");
  Expect("kiln_trial_run_seconds_count{target=\"cuda\"} 3");
  Expect("kiln_trial_run_wait_seconds_sum 12");
  Expect("kiln_user_device_seconds_total{user=\"ann\"} 0.75");
  Expect("kiln_commit_seconds_count 1");
}

TEST_F(CountedStoreTest, WhatWasNotCommittedDoesNotCount) {
  AddJob("a", "ann");
  faulty_.FailAt(0, 1, Unavailable("the disk is full"));
  const std::vector<store::Record> records = {TestRecord("a", 0)};
  EXPECT_FALSE(store_.AddRecords(records).ok());
  EXPECT_THAT(metrics_.Text(), Not(HasSubstr("kiln_trials_total")));
  Expect("kiln_store_errors_total 1");
  // A mistake of the caller is no error of the disk.
  EXPECT_FALSE(store_.GetJob("none").ok());
  Expect("kiln_store_errors_total 1");
}

TEST_F(CountedStoreTest, ThereAreFewLabels) {
  std::vector<store::Record> records;
  for (uint32_t i = 0; i < 300; ++i) {
    const std::string id = fmt::format("job{}", i);
    AddJob(id, fmt::format("user{}", i));
    records.push_back(TestRecord(id, 0));
    records.back().target = fmt::format("kind{} -x", i);
  }
  ASSERT_OK(store_.AddRecords(records));
  const std::string text = metrics_.Text();
  const auto count = [&](const std::string& part) {
    int found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++found;
    }
    return found;
  };
  EXPECT_EQ(count("\nkiln_trials_total{error=\"NO_ERROR\""), CountedStore::kMostTargets + 1);
  EXPECT_EQ(count("\nkiln_user_device_seconds_total{"), CountedStore::kMostUsers + 1);
  Expect("kiln_trials_total{error=\"NO_ERROR\",target=\"other\"} 292");
  Expect("kiln_user_device_seconds_total{user=\"other\"} 25");
}

TEST_F(CountedStoreTest, CountsTheTimeOfRounds) {
  AddJob("a", "ann");
  store::RoundRow round;
  round.job_id = "a";
  round.search_s = 1.5;
  ASSERT_OK(store_.AddRound(round));
  Expect("kiln_search_round_seconds_sum 1.5");
}

}  // namespace
}  // namespace kiln::scheduler
