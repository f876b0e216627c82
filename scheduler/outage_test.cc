// The database is away for a while, at each write of a job in turn, and jobs whose processes die.
#include <functional>
#include <map>
#include <set>

#include "base/status_testing.h"
#include "scheduler/fake_workers.h"
#include "scheduler/jobs.h"
#include "scheduler/patient_store.h"
#include "scheduler/test_job.h"
#include "store/faulty_store.h"
#include "store/memory_store.h"

namespace kiln::scheduler {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::chrono::milliseconds kPause{1};

Jobs::Options QuickJobs() {
  Jobs::Options options;
  options.dispatch = QuickDispatch();
  options.store_pause = kPause;
  return options;
}

// A job on a store of its own that fails; its writes are counted from the first after Submit.
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

  // To its end.
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
  int finals = 0;
  for (uint32_t i = 0; i < trials; ++i) {
    EXPECT_EQ(records[i].trial, i);
    EXPECT_EQ(records[i].error, store::kNoError) << records[i].message;
    candidates.insert(records[i].steps);
    finals += !records[i].final_costs_s.empty();
  }
  EXPECT_EQ(candidates.size(), trials);
  EXPECT_GE(finals, 2);
  EXPECT_EQ(store.TasksOfJob(id)->at(0).reference_cost_s, 5e-3);
}

constexpr uint32_t kTrials = 12;

// How many writes the job makes varies with what comes together; beyond the last one nothing fails.
int MostWrites() {
  OutageRun run;
  ExpectWhole(run.store(), run.Run(kTrials), kTrials);
  const int writes = run.faulty().writes();
  EXPECT_GE(writes, 7) << "submit, running, records, rounds, finals, succeeded";
  return writes + 2;
}

TEST(OutageTest, AtEachWriteOfAJobIsWaitedOut) {
  int outages = 0;
  const int most = MostWrites();
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

// The write was made, and its answer is an error: made again, it is there once.
TEST(OutageTest, AWriteWhoseAnswerIsLostCountsOnce) {
  const int most = MostWrites();
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
  // The next write and what follows.
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
  // Without workers it neither reads nor writes.
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
  EXPECT_EQ(store_->ListJobs(0)->size(), 1u);
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
  EXPECT_TRUE(store_->ListJobs(0)->empty());
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

// The write was made, its answer lost; the reply was lost, or the scheduler died before it.
TEST_F(RequestTest, ARepeatedSubmitMakesNoSecondJob) {
  faulty_.FailAt(0, 1, Unavailable("I/O error"), /*lost_answer=*/true);
  ASSERT_OK_AND_ASSIGN(const std::string id, jobs_->Submit(TestJob(4), "request 1"));
  EXPECT_EQ(faulty_.failed(), 1);
  EXPECT_EQ(*jobs_->Submit(TestJob(4), "request 1"), id);
  ASSERT_OK_AND_ASSIGN(const std::string second, jobs_->Submit(TestJob(4), "request 2"));
  EXPECT_NE(second, id);
  Start(std::chrono::seconds(60));
  EXPECT_EQ(*jobs_->Submit(TestJob(4), "request 1"), id);
  EXPECT_EQ(store_->ListJobs(0)->size(), 2u);
  cluster_.AddBuilder(builder_, "b1", 2);
  cluster_.AddRunner(runner_, "r1");
  ASSERT_TRUE(Ends(id));
  ASSERT_TRUE(Ends(second));
  EXPECT_EQ(store_->RecordsOfJob(id, 0)->size(), 4u);
  EXPECT_EQ(*jobs_->Submit(TestJob(4), "request 1"), id) << "it has ended";
  EXPECT_EQ(store_->ListJobs(0)->size(), 2u);
}

// ---- the store that waits -------------------------------------------------------------------

TEST(PatientStoreTest, SaysWhatItWaitsForAndStops) {
  const auto store = store::NewMemoryStore();
  store::FaultyStore faulty(*store);
  std::stop_source stop;
  PatientStore patient(faulty, "job x", stop.get_token(), kPause);
  EXPECT_EQ(patient.problem(), "");
  faulty.FailAt(0, 1'000'000, ResourceExhausted("no space left"));
  store::JobRow job;
  job.id = "j";
  Status status;
  std::thread writer([&] { status = patient.AddJob(job); });
  EXPECT_TRUE(Eventually([&] { return patient.problem() == "no space left"; }));
  stop.request_stop();
  writer.join();
  EXPECT_THAT(status, StatusIs(StatusCode::kCancelled, HasSubstr("no space left")));
  EXPECT_EQ(patient.problem(), "");
}

// A call of each method of the interface, on a store with job "j", its task and record 1.
std::map<std::string, std::function<Status(store::Store&)>> AllCalls() {
  store::JobRow job;
  job.id = "k";
  store::TaskRow task;
  task.job_id = "j";
  task.index = 1;
  store::Record record;
  record.job_id = "j";
  record.trial = 1;
  record.target = "null";
  record.steps = "[]";
  record.costs_s = {1};
  store::RoundRow round;
  round.job_id = "j";
  const store::Computation computation{.id = "c", .key = "k", .dag = "d", .flop_count = 1};
  return {
      {"AddJob", [=](store::Store& s) { return s.AddJob(job); }},
      {"UpdateJobState",
       [](store::Store& s) { return s.UpdateJobState("j", store::JobState::kRunning, "", 1); }},
      {"ReopenJob", [](store::Store& s) { return s.ReopenJob("j"); }},
      {"SetProgress", [](store::Store& s) { return s.SetProgress("j", {}); }},
      {"GetJob", [](store::Store& s) { return s.GetJob("j").status(); }},
      {"ListJobs", [](store::Store& s) { return s.ListJobs(0).status(); }},
      {"LoadUnfinishedJobs", [](store::Store& s) { return s.LoadUnfinishedJobs().status(); }},
      {"AddTasks", [=](store::Store& s) { return s.AddTasks("j", {&task, 1}); }},
      {"TasksOfJob", [](store::Store& s) { return s.TasksOfJob("j").status(); }},
      {"SetReferenceCost", [](store::Store& s) { return s.SetReferenceCost("j", 0, 1); }},
      {"AddRecords", [=](store::Store& s) { return s.AddRecords({&record, 1}).status(); }},
      {"ImportRecords",
       [=](store::Store& s) { return s.ImportRecords("j", {&record, 1}).status(); }},
      {"GetRecord", [](store::Store& s) { return s.GetRecord(1).status(); }},
      {"RecordsOfJob", [](store::Store& s) { return s.RecordsOfJob("j", 0).status(); }},
      {"LatestRecords", [](store::Store& s) { return s.LatestRecords("null", 1).status(); }},
      {"BestOfJob", [](store::Store& s) { return s.BestOfJob("j", 0).status(); }},
      {"UnscheduledOfJob", [](store::Store& s) { return s.UnscheduledOfJob("j", 0).status(); }},
      {"CountTrials", [](store::Store& s) { return s.CountTrials("j").status(); }},
      {"SetFinals",
       [](store::Store& s) {
         const store::Finals finals{.id = 1, .costs_s = {1}, .readings = 1};
         return s.SetFinals({&finals, 1});
       }},
      {"AddComputations", [=](store::Store& s) { return s.AddComputations({&computation, 1}); }},
      {"ComputationsOfKey", [](store::Store& s) { return s.ComputationsOfKey("k").status(); }},
      {"BindKey", [=](store::Store& s) { return s.BindKey(computation); }},
      {"BoundTo", [](store::Store& s) { return s.BoundTo("k").status(); }},
      {"BindRecords",
       [=](store::Store& s) {
         const int64_t id = 1;
         return s.BindRecords(computation, {&id, 1}).status();
       }},
      {"AddRound", [=](store::Store& s) { return s.AddRound(round).status(); }},
      {"RoundsOfJob", [](store::Store& s) { return s.RoundsOfJob("j", 0).status(); }},
      {"NextIncarnation", [](store::Store& s) { return s.NextIncarnation().status(); }},
      {"Read",
       [](store::Store& s) { return s.Read([](store::Store::Snapshot&) { return OkStatus(); }); }},
  };
}

// What a store is: a job, a task, a record.
std::unique_ptr<store::Store> StoreWithAJob() {
  auto store = store::NewMemoryStore();
  store::JobRow job;
  job.id = "j";
  store::TaskRow task;
  task.job_id = "j";
  store::Record record;
  record.job_id = "j";
  record.target = "null";
  record.steps = "[]";
  record.costs_s = {1};
  KILN_CHECK(store->AddJob(job, {&task, 1}).ok());
  KILN_CHECK(store->AddRecord(record).ok());
  return store;
}

TEST(PatientStoreTest, EveryCallOfTheInterfaceWaitsAlike) {
  for (const auto& [name, call] : AllCalls()) {
    SCOPED_TRACE(name);
    const auto plain = StoreWithAJob();
    ASSERT_OK(call(*plain));
    for (const Status& error : {ResourceExhausted("no space left"), Unavailable("locked")}) {
      const auto store = StoreWithAJob();
      store::FaultyStore faulty(*store);
      PatientStore patient(faulty, "job x", {}, kPause);
      faulty.FailAt(0, 4, error);
      EXPECT_FALSE(faulty.SetProgress("j", {}).ok()) << "the outage begins with a write";
      EXPECT_OK(call(patient));
      EXPECT_EQ(faulty.failed(), 4);
    }
  }
}

TEST(PatientStoreTest, ReadsWaitToo) {
  const auto store = store::NewMemoryStore();
  store::FaultyStore faulty(*store);
  PatientStore patient(faulty, "job x", {}, kPause);
  store::JobRow job;
  job.id = "j";
  faulty.FailAt(0, 3, Unavailable("I/O error"));
  ASSERT_OK(patient.AddJob(job));
  EXPECT_EQ(faulty.failed(), 3);
  EXPECT_THAT(patient.AddJob(job), StatusIs(StatusCode::kAlreadyExists, testing::_));
  faulty.FailAt(0, 2, Unavailable("I/O error"));
  EXPECT_FALSE(faulty.AddJob(job).ok());
  ASSERT_OK_AND_ASSIGN(const auto jobs, patient.ListJobs(0));
  EXPECT_EQ(jobs.size(), 1u);
  EXPECT_EQ(faulty.failed(), 2);
}

// ---- processes that die ---------------------------------------------------------------------

// What a process leaves that died while it ran the job.
void DieWhileRunning(store::Store& store, const std::string& id) {
  ASSERT_OK(store.UpdateJobState(id, store::JobState::kRunning, "", 1));
}

class DeathTest : public testing::Test {
 protected:
  void Start(const std::string& unfinished = "all") {
    jobs_.reset();
    Jobs::Options options = QuickJobs();
    options.unfinished = unfinished;
    jobs_ = std::make_unique<Jobs>(*store_, cluster_.factory(), events_, options);
    ASSERT_OK(jobs_->Start());
  }
  std::string Submit(uint32_t trials) {
    auto id = jobs_->Submit(TestJob(trials));
    KILN_CHECK(id.ok(), "{}", id.status().ToString());
    return *id;
  }
  // Jobs that nobody runs.
  std::vector<std::string> Leave(int jobs) {
    Start();
    std::vector<std::string> ids;
    for (int i = 0; i < jobs; ++i) ids.push_back(Submit(4));
    jobs_.reset();
    return ids;
  }
  store::JobState State(const std::string& id) { return store_->GetJob(id)->state; }
  bool Ends(const std::string& id) {
    return Eventually([&] { return store::IsFinal(State(id)); });
  }
  void AddWorkers() {
    cluster_.AddBuilder(builder_, "b1", 2);
    cluster_.AddRunner(runner_, "r1");
  }

  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
  FakeCluster cluster_;
  FakeBuilder builder_;
  FakeRunner runner_;
  EventHub events_;
  std::unique_ptr<Jobs> jobs_;
};

TEST_F(DeathTest, AJobThatRanAtTwoDeathsInARowIsSetAside) {
  const std::vector<std::string> ids = Leave(3);
  DieWhileRunning(*store_, ids[0]);
  DieWhileRunning(*store_, ids[0]);
  DieWhileRunning(*store_, ids[1]);
  AddWorkers();
  Start();
  EXPECT_EQ(State(ids[0]), store::JobState::kFailed);
  EXPECT_THAT(store_->GetJob(ids[0])->message,
              AllOf(HasSubstr("set aside: the scheduler died 2 times in a row"),
                    HasSubstr("resumed by its id")));
  ASSERT_TRUE(Ends(ids[1]));
  ASSERT_TRUE(Ends(ids[2]));
  EXPECT_EQ(State(ids[1]), store::JobState::kSucceeded) << "one death is chance";
  EXPECT_EQ(State(ids[2]), store::JobState::kSucceeded);
  // Its user wants another try.
  ASSERT_OK(jobs_->Resume(ids[0]));
  ASSERT_TRUE(Ends(ids[0]));
  EXPECT_EQ(State(ids[0]), store::JobState::kSucceeded);
}

TEST_F(DeathTest, AResultInBetweenClearsTheJob) {
  const std::string id = Leave(1)[0];
  DieWhileRunning(*store_, id);
  store::Record record;
  record.job_id = id;
  record.target = "null";
  record.steps = "[]";
  record.costs_s = {1e-4};
  ASSERT_OK(store_->AddRecord(record));
  DieWhileRunning(*store_, id);
  AddWorkers();
  Start();
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), store::JobState::kSucceeded);
}

TEST_F(DeathTest, AStopInOrderIsNoDeath) {
  const std::string id = Leave(1)[0];
  for (int i = 0; i < 4; ++i) {
    Start();  // without workers: it waits
    ASSERT_TRUE(Eventually([&] { return State(id) == store::JobState::kRunning; }));
    EXPECT_EQ(store_->GetJob(id)->fruitless_runs, 1);
    jobs_->Stop();
    EXPECT_EQ(State(id), store::JobState::kQueued);
    EXPECT_EQ(store_->GetJob(id)->fruitless_runs, 0);
  }
}

// Which of two killed the process? They do not run together again before one has a result.
TEST_F(DeathTest, SuspectsRunOneAtATime) {
  const std::vector<std::string> ids = Leave(3);
  DieWhileRunning(*store_, ids[0]);
  DieWhileRunning(*store_, ids[1]);
  Start();
  ASSERT_TRUE(Eventually([&] {
    return store_->GetJob(ids[0])->fruitless_runs == 2 &&
           State(ids[2]) == store::JobState::kRunning;
  }));
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(store_->GetJob(ids[1])->fruitless_runs, 1) << "waits for the other";
  AddWorkers();
  for (const std::string& id : ids) {
    ASSERT_TRUE(Ends(id));
    EXPECT_EQ(State(id), store::JobState::kSucceeded);
  }
}

TEST_F(DeathTest, UnfinishedJobsGoOnAsAsked) {
  const std::vector<std::string> ids = Leave(3);
  DieWhileRunning(*store_, ids[0]);
  AddWorkers();
  Start("none");
  const std::string own = Submit(4);
  ASSERT_TRUE(Ends(own));
  for (const std::string& id : ids) EXPECT_FALSE(store::IsFinal(State(id)));
  Start(ids[1]);
  ASSERT_TRUE(Ends(ids[1]));
  EXPECT_FALSE(store::IsFinal(State(ids[0])));
  ASSERT_OK(jobs_->Resume(ids[0]));
  ASSERT_OK(jobs_->Resume(ids[0]));
  ASSERT_TRUE(Ends(ids[0]));
  EXPECT_EQ(store_->RecordsOfJob(ids[0], 0)->size(), 4u);
  EXPECT_FALSE(store::IsFinal(State(ids[2])));
}

TEST_F(DeathTest, JobsAreTakenUpToALimit) {
  Jobs::Options options = QuickJobs();
  options.most_of_a_user = 2;
  options.most_jobs = 3;
  jobs_ = std::make_unique<Jobs>(*store_, cluster_.factory(), events_, options);
  ASSERT_OK(jobs_->Start());
  v1::JobSpec spec = TestJob(4);
  ASSERT_OK(jobs_->Submit(spec));
  ASSERT_OK_AND_ASSIGN(const std::string second, jobs_->Submit(spec));
  EXPECT_THAT(jobs_->Submit(spec), StatusIs(StatusCode::kResourceExhausted,
                                            HasSubstr("2 jobs of 'ada' are unfinished")));
  spec.set_user("bob");
  ASSERT_OK(jobs_->Submit(spec));
  spec.set_user("cid");
  EXPECT_THAT(jobs_->Submit(spec),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("3 jobs are unfinished")));
  ASSERT_OK(jobs_->Cancel(second));
  EXPECT_TRUE(Eventually([&] { return jobs_->Submit(spec).ok(); }));
}

TEST_F(DeathTest, ACancelledJobIsResumedWithWhatItHas) {
  AddWorkers();
  Start();
  const std::string id = Submit(300);
  ASSERT_TRUE(Eventually([&] { return store_->RecordsOfJob(id, 0)->size() >= 10; }));
  ASSERT_OK(jobs_->Cancel(id));
  const size_t before = store_->RecordsOfJob(id, 0)->size();
  ASSERT_OK(jobs_->Resume(id));
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), store::JobState::kSucceeded);
  const auto records = *store_->RecordsOfJob(id, 0);
  EXPECT_EQ(records.size(), 300u);
  EXPECT_GE(records.size(), before);
  EXPECT_THAT(jobs_->Resume(id),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("has succeeded")));
  EXPECT_THAT(jobs_->Resume("none"), StatusIs(StatusCode::kNotFound, testing::_));
}

}  // namespace
}  // namespace kiln::scheduler
