// Jobs whose process died, or left them unfinished.
#include <string>
#include <vector>

#include "base/status_testing.h"
#include "scheduler/dispatch/workers_testing.h"
#include "scheduler/jobs/jobs.h"
#include "scheduler/values/job_testing.h"
#include "store/memory_store.h"

namespace kiln::scheduler {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Jobs::Options QuickJobs() {
  Jobs::Options options;
  options.dispatch = QuickDispatch();
  return options;
}

// Leaves the job as a process leaves it that died while it ran the job.
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
    v1::JobSpec spec = TestJob(trials);
    // Each job tunes its task by itself.
    spec.mutable_options()->set_no_warm_start(true);
    auto id = jobs_->Submit(spec);
    KILN_CHECK(id.ok(), "{}", id.status().ToString());
    return *id;
  }
  // Leaves jobs that nobody runs.
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

TEST_F(DeathTest, AJobThatRanAtTwoSchedulerDeathsInARowFails) {
  const std::vector<std::string> ids = Leave(3);
  DieWhileRunning(*store_, ids[0]);
  DieWhileRunning(*store_, ids[0]);
  DieWhileRunning(*store_, ids[1]);
  AddWorkers();
  Start();
  EXPECT_EQ(State(ids[0]), store::JobState::kFailed);
  EXPECT_THAT(
      store_->GetJob(ids[0])->message,
      AllOf(HasSubstr("the scheduler died 2 times in a row"), HasSubstr("resumed by its id")));
  ASSERT_TRUE(Ends(ids[1]));
  ASSERT_TRUE(Ends(ids[2]));
  EXPECT_EQ(State(ids[1]), store::JobState::kSucceeded) << "one death is chance";
  EXPECT_EQ(State(ids[2]), store::JobState::kSucceeded);
  // The user asks for another try.
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
    Start();  // there are no workers, so the job waits
    ASSERT_TRUE(Eventually([&] { return State(id) == store::JobState::kRunning; }));
    EXPECT_EQ(store_->GetJob(id)->fruitless_runs, 1);
    jobs_->Stop();
    EXPECT_EQ(State(id), store::JobState::kQueued);
    EXPECT_EQ(store_->GetJob(id)->fruitless_runs, 0);
  }
}

// Either of two jobs may have killed the process. The two run together again only when one has a
// result.
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

TEST_F(DeathTest, AllGoOnButThoseThatAreNamed) {
  const std::vector<std::string> ids = Leave(3);
  AddWorkers();
  Start("not:" + ids[0] + "," + ids[2]);
  ASSERT_TRUE(Ends(ids[1]));
  EXPECT_FALSE(store::IsFinal(State(ids[0])));
  EXPECT_FALSE(store::IsFinal(State(ids[2])));
  Start("not:");
  EXPECT_TRUE(Ends(ids[0]));
  EXPECT_TRUE(Ends(ids[2]));
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
