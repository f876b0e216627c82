// The database is away for a while: at each write of a job in turn, and when requests come.
#include <set>
#include <thread>

#include "base/status_testing.h"
#include "scheduler/dispatch/workers_testing.h"
#include "scheduler/jobs/jobs.h"
#include "scheduler/values/job_testing.h"
#include "store/faulty_store_testing.h"
#include "store/memory_store.h"

namespace kiln::scheduler {
namespace {

using testing::HasSubstr;

constexpr std::chrono::milliseconds kPause{1};

Jobs::Options QuickJobs() {
  Jobs::Options options;
  options.dispatch = QuickDispatch();
  options.store_pause = kPause;
  return options;
}

// A job on a store of its own that fails. The job's writes are counted from the first after Submit.
class OutageRun {
 public:
  OutageRun() : store_(store::NewMemoryStore()), faulty_(*store_) {
    cluster_.AddBuilder(builder_, "b1", 2);
    cluster_.AddRunner(runner_, "r1");
    jobs_ = std::make_unique<Jobs>(faulty_, cluster_.factory(), events_, QuickJobs());
    KILN_CHECK(jobs_->Start().ok());
  }

  store::FaultyStore& faulty() { return faulty_; }
  store::Store& store() { return *store_; }

  // Runs a job to its end and returns its id.
  std::string Run(uint32_t trials) {
    v1::JobSpec spec = TestJob(trials);
    spec.mutable_options()->set_finalists(2);
    spec.mutable_options()->set_trials_per_round(4);
    auto id = jobs_->Submit(spec);
    KILN_CHECK(id.ok(), "{}", id.status().ToString());
    EXPECT_TRUE(Eventually([&] { return store::IsFinal(store_->GetJob(*id)->state); }));
    jobs_->Stop();
    return *id;
  }

 private:
  std::unique_ptr<store::Store> store_;
  store::FaultyStore faulty_;
  FakeCluster cluster_;
  FakeBuilder builder_;
  FakeRunner runner_;
  EventHub events_;
  std::unique_ptr<Jobs> jobs_;
};

void ExpectWhole(store::Store& store, const std::string& id, uint32_t trials) {
  const store::JobRow job = *store.GetJob(id);
  EXPECT_EQ(job.state, store::JobState::kSucceeded) << job.message;
  EXPECT_EQ(job.message, "");
  const auto records = *store.RecordsOfJob(id, 0);
  ASSERT_EQ(records.size(), trials);
  std::set<std::string> candidates;
  int remeasured = 0;
  for (uint32_t i = 0; i < trials; ++i) {
    EXPECT_EQ(records[i].trial, i);
    EXPECT_EQ(records[i].error, store::kNoError) << records[i].message;
    candidates.insert(records[i].steps);
    remeasured += !records[i].remeasured_costs_s.empty();
  }
  EXPECT_EQ(candidates.size(), trials);
  EXPECT_GE(remeasured, 2);
  EXPECT_EQ(store.TasksOfJob(id)->at(0).reference_cost_s, 5e-3);
}

constexpr uint32_t kTrials = 12;

// Returns the number of writes of the job. The number varies with how results come together; a
// failure after the last write happens to nobody.
int MaxWrites() {
  OutageRun run;
  ExpectWhole(run.store(), run.Run(kTrials), kTrials);
  const int writes = run.faulty().writes();
  EXPECT_GE(writes, 7) << "submit, running, records, rounds, final race, succeeded";
  return writes + 2;
}

TEST(OutageTest, AtEachWriteOfAJobIsWaitedOut) {
  int outages = 0;
  const int most = MaxWrites();
  for (int write = 1; write < most; ++write) {
    for (const Status& error : {ResourceExhausted("no space left"), Unavailable("locked")}) {
      SCOPED_TRACE(fmt::format("write {}: {}", write, Message(error)));
      OutageRun run;
      run.faulty().FailAt(write, 3, error);
      const std::string id = run.Run(kTrials);
      ExpectWhole(run.store(), id, kTrials);
      EXPECT_EQ(run.store().RoundsOfJob(id, 0)->size(), 4u) << "of 3, 4, 4 and 1 trials";
      outages += run.faulty().failed() == 3;
    }
  }
  EXPECT_GE(outages, 2 * 6);
}

// The write succeeds, but its answer is an error. The repeated write must not count twice.
TEST(OutageTest, AWriteWhoseAnswerIsLostCountsOnce) {
  const int most = MaxWrites();
  for (int write = 1; write < most; ++write) {
    SCOPED_TRACE(fmt::format("write {}", write));
    OutageRun run;
    run.faulty().FailAt(write, 1, Unavailable("I/O error"), /*lost_answer=*/true);
    ExpectWhole(run.store(), run.Run(kTrials), kTrials);
  }
}

TEST(OutageTest, WhatDoesNotPassFailsTheJob) {
  OutageRun run;
  run.faulty().FailAt(2, 1, DataLoss("the file is damaged"));
  const std::string id = run.Run(kTrials);
  const store::JobRow job = *run.store().GetJob(id);
  EXPECT_EQ(job.state, store::JobState::kFailed);
  EXPECT_THAT(job.message, HasSubstr("the file is damaged"));
}

// ---- requests -------------------------------------------------------------------------------

class RequestTest : public testing::Test {
 protected:
  RequestTest() { Start(std::chrono::seconds(60)); }

  void Start(std::chrono::milliseconds patience) {
    jobs_.reset();
    Jobs::Options options = QuickJobs();
    options.request_patience = patience;
    jobs_ = std::make_unique<Jobs>(faulty_, cluster_.factory(), events_, options);
    KILN_CHECK(jobs_->Start().ok());
  }
  // The next write and those after it fail.
  void DatabaseIsAway(int calls) { faulty_.FailAt(0, calls, Unavailable("the disk is away")); }
  bool Ends(const std::string& id) {
    return Eventually([&] { return store::IsFinal(store_->GetJob(id)->state); });
  }

  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
  store::FaultyStore faulty_{*store_};
  FakeCluster cluster_;
  FakeBuilder builder_;
  FakeRunner runner_;
  EventHub events_;
  std::unique_ptr<Jobs> jobs_;
};

TEST_F(RequestTest, WaitOutADatabaseThatIsAway) {
  DatabaseIsAway(3);
  ASSERT_OK_AND_ASSIGN(const std::string id, jobs_->Submit(TestJob(4)));
  EXPECT_EQ(faulty_.failed(), 3);
  // Without workers the job neither reads nor writes.
  ASSERT_TRUE(Eventually([&] { return store_->GetJob(id)->state == store::JobState::kRunning; }));
  DatabaseIsAway(3);
  ASSERT_OK(jobs_->Cancel(id));
  EXPECT_EQ(faulty_.failed(), 3);
  EXPECT_EQ(store_->GetJob(id)->state, store::JobState::kCancelled);
  DatabaseIsAway(3);
  ASSERT_OK(jobs_->Resume(id));
  EXPECT_EQ(faulty_.failed(), 3);
  cluster_.AddBuilder(builder_, "b1", 2);
  cluster_.AddRunner(runner_, "r1");
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(store_->GetJob(id)->state, store::JobState::kSucceeded);
}

TEST_F(RequestTest, WaitSoLongAndSayWhy) {
  Start(std::chrono::milliseconds(20));
  ASSERT_OK_AND_ASSIGN(const std::string id, jobs_->Submit(TestJob(4)));
  ASSERT_TRUE(Eventually([&] { return store_->GetJob(id)->state == store::JobState::kRunning; }));
  DatabaseIsAway(1'000'000);
  EXPECT_THAT(jobs_->Submit(TestJob(4)),
              StatusIs(StatusCode::kUnavailable, HasSubstr("the disk is away")));
  EXPECT_THAT(jobs_->Cancel(id), StatusIs(StatusCode::kUnavailable, HasSubstr("the disk is away")));
  EXPECT_THAT(jobs_->Resume(id), StatusIs(StatusCode::kUnavailable, HasSubstr("the disk is away")));
  EXPECT_EQ(store_->ListJobs(std::nullopt)->size(), 1u);
  EXPECT_FALSE(store::IsFinal(store_->GetJob(id)->state));
}

TEST_F(RequestTest, EndWhenNobodyWaitsForTheAnswer) {
  DatabaseIsAway(1'000'000);
  std::stop_source gone;
  Status submitted, behind;
  std::thread one([&] { submitted = jobs_->Submit(TestJob(4), "a", gone.get_token()).status(); });
  std::thread other([&] { behind = jobs_->Submit(TestJob(4), "b", gone.get_token()).status(); });
  EXPECT_TRUE(Eventually([&] { return faulty_.failed() >= 2; }));
  gone.request_stop();
  one.join();
  other.join();
  EXPECT_EQ(submitted.code(), StatusCode::kCancelled);
  EXPECT_EQ(behind.code(), StatusCode::kCancelled);
  faulty_.FailAt(0, 0, OkStatus());
  EXPECT_TRUE(store_->ListJobs(std::nullopt)->empty());
}

TEST_F(RequestTest, AStopOfTheSchedulerEndsThem) {
  DatabaseIsAway(1'000'000);
  Status submitted;
  std::thread one([&] { submitted = jobs_->Submit(TestJob(4)).status(); });
  EXPECT_TRUE(Eventually([&] { return faulty_.failed() >= 2; }));
  jobs_->Stop();
  one.join();
  EXPECT_THAT(submitted, StatusIs(StatusCode::kUnavailable, HasSubstr("stopping")));
}

// The write succeeds and its answer is lost; or the reply is lost, or the scheduler dies before it.
TEST_F(RequestTest, ARepeatedSubmitMakesNoSecondJob) {
  faulty_.FailAt(0, 1, Unavailable("I/O error"), /*lost_answer=*/true);
  ASSERT_OK_AND_ASSIGN(const std::string id, jobs_->Submit(TestJob(4), "request 1"));
  EXPECT_EQ(faulty_.failed(), 1);
  EXPECT_EQ(*jobs_->Submit(TestJob(4), "request 1"), id);
  ASSERT_OK_AND_ASSIGN(const std::string second, jobs_->Submit(TestJob(4), "request 2"));
  EXPECT_NE(second, id);
  Start(std::chrono::seconds(60));
  EXPECT_EQ(*jobs_->Submit(TestJob(4), "request 1"), id);
  EXPECT_EQ(store_->ListJobs(std::nullopt)->size(), 2u);
  cluster_.AddBuilder(builder_, "b1", 2);
  cluster_.AddRunner(runner_, "r1");
  ASSERT_TRUE(Ends(id));
  ASSERT_TRUE(Ends(second));
  EXPECT_EQ(store_->RecordsOfJob(id, 0)->size(), 4u);
  EXPECT_EQ(*jobs_->Submit(TestJob(4), "request 1"), id) << "it has ended";
  EXPECT_EQ(store_->ListJobs(std::nullopt)->size(), 2u);
}

}  // namespace
}  // namespace kiln::scheduler
