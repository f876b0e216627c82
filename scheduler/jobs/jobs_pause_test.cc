// Tests jobs that are paused, that make way for others, and that the limits of their users refuse.
#include <atomic>

#include "scheduler/jobs/jobs_testing.h"

namespace kiln::scheduler {
namespace {

using testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(Stores, JobsTest, testing::Values(false, true), StoreName);

// Starts jobs whose users have shares.
class SharedJobsTest : public JobsTest {
 protected:
  // The threads of the jobs use the shares.
  ~SharedJobsTest() override { jobs_.reset(); }

  void StartShared(int max_running) {
    ASSERT_OK(shares_.Start());
    events_ = std::make_unique<EventHub>();
    Jobs::Options options;
    options.max_running = max_running;
    options.dispatch = QuickDispatch();
    options.shares = &shares_;
    jobs_ = std::make_unique<Jobs>(*store_, cluster_.factory(), *events_, options);
    ASSERT_OK(jobs_->Start());
  }
  std::string SubmitOf(const std::string& user, uint32_t trials, int priority = 0) {
    v1::JobSpec spec = TestJob(trials);
    spec.set_user(user);
    spec.set_priority(priority);
    // Each job tunes its task by itself.
    spec.mutable_options()->set_no_warm_start(true);
    return Submit(spec);
  }

  FairShares shares_{*store_, {}};
};

INSTANTIATE_TEST_SUITE_P(Stores, SharedJobsTest, testing::Values(true), StoreName);

TEST_P(JobsTest, APausedJobHoldsNothingAndGoesOnWithAllResults) {
  FakeBuilder builder;
  FakeRunner runner(Slow(5));
  Serve(builder, runner);
  const std::string id = Submit(TestJob(60));
  ASSERT_TRUE(Eventually([&] { return Count(id) >= 10; }));
  ASSERT_OK(jobs_->Pause(id));
  EXPECT_EQ(State(id), v1::PAUSED);
  EXPECT_THAT(Status(id).message(), HasSubstr("kiln jobs resume " + id));
  EXPECT_TRUE(Eventually([&] { return cluster_.runners.held() + cluster_.builders.held() == 0; }));
  ASSERT_OK(jobs_->Pause(id));  // a second pause
  // It stays paused when the scheduler starts again.
  Restart();
  const double active_s = store_->GetJob(id)->progress.active_s;
  const size_t count = Count(id);
  EXPECT_LT(count, 60u);
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(State(id), v1::PAUSED);
  EXPECT_EQ(Count(id), count);
  EXPECT_EQ(store_->GetJob(id)->progress.active_s, active_s) << "its time stands still";
  ASSERT_OK(jobs_->Resume(id));
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), v1::SUCCEEDED) << Status(id).message();
  ExpectExactly(id, 60);
}

TEST_P(JobsTest, ATrialInHandIsFinishedBeforeThePause) {
  FakeBuilder builder;
  std::atomic<bool> hold{false};
  std::atomic<int> held{0}, cancelled{0};
  FakeRunner runner([&](auto& context, const auto&, auto&) {
    if (hold) ++held;
    while (hold && !context.IsCancelled()) absl::SleepFor(absl::Milliseconds(2));
    cancelled += context.IsCancelled();
    return grpc::Status::OK;
  });
  Serve(builder, runner);
  const std::string id = Submit(TestJob(200));
  ASSERT_TRUE(Eventually([&] { return Count(id) >= 5; }));
  hold = true;
  ASSERT_TRUE(Eventually([&] { return held > 0; }));
  const size_t count = Count(id);
  ASSERT_OK(jobs_->Pause(id));
  EXPECT_EQ(State(id), v1::PAUSED);
  EXPECT_EQ(cluster_.runners.held(), 1);
  hold = false;
  EXPECT_TRUE(Eventually([&] { return cluster_.runners.held() == 0; }));
  EXPECT_TRUE(Eventually([&] { return Count(id) > count; })) << "the trial is not lost";
  EXPECT_EQ(cancelled, 0);
  ASSERT_OK(jobs_->Resume(id));
  EXPECT_TRUE(Eventually([&] { return State(id) == v1::RUNNING; }));
  // A cancel waits for no trial.
  hold = true;
  held = 0;
  ASSERT_TRUE(Eventually([&] { return held > 0; }));
  ASSERT_OK(jobs_->Pause(id));
  ASSERT_OK(jobs_->Cancel(id));
  EXPECT_TRUE(Eventually([&] { return cluster_.runners.held() == 0; }));
  EXPECT_TRUE(Eventually([&] { return cancelled > 0; })) << "its runner learns of it";
  EXPECT_EQ(State(id), v1::CANCELLED);
}

TEST_P(JobsTest, AQueuedJobIsPausedAndAnEndedOneIsNot) {
  Start(1);
  const std::string waiting = Submit(TestJob(5));
  const std::string queued = Submit(TestJob(5));
  EXPECT_TRUE(Eventually([&] { return State(waiting) == v1::RUNNING; }));
  ASSERT_OK(jobs_->Pause(queued));
  ASSERT_OK(jobs_->Pause(waiting));
  EXPECT_EQ(State(queued), v1::PAUSED);
  ASSERT_OK(jobs_->Cancel(queued));
  EXPECT_EQ(State(queued), v1::CANCELLED);
  EXPECT_THAT(jobs_->Pause(queued),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("already cancelled")));
  EXPECT_THAT(jobs_->Pause("nobody"), StatusIs(StatusCode::kNotFound, HasSubstr("nobody")));
}

TEST_P(SharedJobsTest, AnUrgentJobTakesThePlaceOfAnother) {
  FakeBuilder builder;
  FakeRunner runner(Slow(3));
  AddBuilder(builder);
  AddRunner(runner);
  StartShared(/*max_running=*/1);
  const std::string slow = SubmitOf("ann", 60);
  ASSERT_TRUE(Eventually([&] { return Count(slow) >= 5; }));
  const std::string urgent = SubmitOf("ann", 20, 1);
  ASSERT_TRUE(Ends(urgent));
  EXPECT_EQ(State(urgent), v1::SUCCEEDED);
  EXPECT_LT(Count(slow), 60u);
  ASSERT_TRUE(Ends(slow));
  EXPECT_EQ(State(slow), v1::SUCCEEDED) << Status(slow).message();
  ExpectExactly(slow, 60);
}

TEST_P(SharedJobsTest, AUserWithoutARunningJobGetsThePlaceOfOneOfSeveral) {
  StartShared(/*max_running=*/2);
  const std::string first = SubmitOf("ann", 5), second = SubmitOf("ann", 5);
  const auto both_run = [&] { return State(first) == v1::RUNNING && State(second) == v1::RUNNING; };
  ASSERT_TRUE(Eventually(both_run));
  const std::string other = SubmitOf("bob", 5);
  ASSERT_TRUE(Eventually([&] { return State(other) == v1::RUNNING; }));
  EXPECT_NE(State(first) == v1::RUNNING, State(second) == v1::RUNNING);
  // A second job of bob's waits: each of the two users has one that runs.
  const std::string more = SubmitOf("bob", 5);
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(State(more), v1::QUEUED);
  ASSERT_OK(jobs_->Cancel(more));
  ASSERT_OK(jobs_->Cancel(other));
  EXPECT_TRUE(Eventually(both_run));
}

// A user who has had a device for days is not shut out: nothing of his runs.
TEST_P(SharedJobsTest, AUserWithMuchUseGetsAPlaceToo) {
  StartShared(/*max_running=*/2);
  ASSERT_TRUE(shares_.Reserve("bob", std::chrono::steady_clock::now(), {}));
  shares_.BeginDevice("bob");
  absl::SleepFor(absl::Milliseconds(20));
  shares_.EndDevice("bob");
  ASSERT_GT(shares_.Use("bob"), shares_.Use("ann"));
  for (int i = 0; i < 4; ++i) SubmitOf("ann", 5);
  const std::string other = SubmitOf("bob", 5);
  EXPECT_TRUE(Eventually([&] { return State(other) == v1::RUNNING; }));
}

TEST_P(SharedJobsTest, AnUrgentJobTakesAPlaceWhenItsProcessComes) {
  StartShared(/*max_running=*/1);
  const std::string slow = SubmitOf("ann", 5);
  ASSERT_TRUE(Eventually([&] { return State(slow) == v1::RUNNING; }));
  v1::JobSpec spec = TestJob(5);
  spec.set_user("ann");
  spec.set_priority(1);
  spec.mutable_served()->set_objective(true);
  const std::string urgent = Submit(spec);
  EXPECT_EQ(State(urgent), v1::QUEUED);
  ASSERT_OK_AND_ASSIGN(const auto process, jobs_->callbacks().Connect(urgent, [] {}));
  EXPECT_TRUE(Eventually([&] { return State(urgent) == v1::RUNNING; }));
  EXPECT_EQ(State(slow), v1::QUEUED);
}

TEST_P(SharedJobsTest, LimitsRefuseWhatIsSubmittedAndNotWhatIsAskedAgain) {
  StartShared(1);
  ASSERT_OK(shares_.SetLimits("ann", {.trials_per_day = 50, .jobs = 2}));
  v1::JobSpec spec = TestJob(20);
  spec.set_user("ann");
  ASSERT_OK_AND_ASSIGN(const std::string first, jobs_->Submit(spec, "one"));
  ASSERT_OK_AND_ASSIGN(const std::string second, jobs_->Submit(spec, "two"));
  EXPECT_THAT(jobs_->Submit(spec, "three"),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("has 2 unfinished jobs")));
  EXPECT_EQ(*jobs_->Submit(spec, "two"), second);
  // A pause does not make room, and a cancel does.
  ASSERT_OK(jobs_->Pause(first));
  EXPECT_FALSE(jobs_->Submit(spec, "three").ok());
  ASSERT_OK(jobs_->Cancel(first));
  spec.mutable_options()->set_trials(31);
  EXPECT_THAT(jobs_->Submit(spec, "three"),
              StatusIs(StatusCode::kResourceExhausted,
                       HasSubstr("asks for 31 trials, 'ann' took 0 in the last 24 hours and has 20 "
                                 "to come")));
  spec.mutable_options()->set_trials(30);
  EXPECT_OK(jobs_->Submit(spec, "three"));
  // A job that goes on counts like a new one.
  EXPECT_THAT(jobs_->Resume(first),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("has 2 unfinished jobs")));
  ASSERT_OK(shares_.SetLimits("ann", {.trials_per_day = 50, .jobs = 3}));
  EXPECT_THAT(jobs_->Resume(first),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("asks for 20 trials")));
  ASSERT_OK(shares_.SetLimits("ann", {.trials_per_day = 70, .jobs = 3}));
  EXPECT_OK(jobs_->Resume(first));
  spec.set_user("bob");
  EXPECT_OK(jobs_->Submit(spec, "four"));
}

}  // namespace
}  // namespace kiln::scheduler
