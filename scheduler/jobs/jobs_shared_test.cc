// Jobs that ask for the same tasks are tuned once.
#include <atomic>

#include "scheduler/jobs/jobs_testing.h"

namespace kiln::scheduler {
namespace {

using testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(Stores, JobsTest, testing::Values(false, true), StoreName);

// Holds all calls until `hold` is cleared.
FakeRunner::Hook HeldBy(const std::atomic<bool>& hold) {
  return [&hold](auto& context, const auto&, auto&) {
    while (hold && !context.IsCancelled()) absl::SleepFor(absl::Milliseconds(2));
    return grpc::Status::OK;
  };
}

TEST_P(JobsTest, ASecondJobTakesTheResultsOfTheOneThatTunesItsTask) {
  FakeBuilder builder;
  std::atomic<bool> hold{true};
  FakeRunner runner(HeldBy(hold));
  Serve(builder, runner);
  const std::string first = Submit(TestJob(40));
  ASSERT_TRUE(Eventually([&] { return State(first) == v1::RUNNING; }));
  const std::string second = Submit(TestJob(30));
  const v1::JobStatus waits = Status(second);
  EXPECT_EQ(waits.state(), v1::QUEUED);
  EXPECT_EQ(waits.tasks(0).tuned_by_job(), first);
  EXPECT_EQ(waits.phase(), "waits for the results of job " + first + ", which tunes the same task");
  EXPECT_EQ(Status(first).tasks(0).tuned_by_job(), "");
  hold = false;
  ASSERT_TRUE(Ends(first));
  ASSERT_TRUE(Ends(second));
  EXPECT_GE(*store_->GetJob(second)->started_ms, *store_->GetJob(first)->finished_ms);
  ExpectExactly(first, 40);
  EXPECT_EQ(Count(second), 0u);
  const v1::JobStatus status = Status(second);
  EXPECT_EQ(status.state(), v1::SUCCEEDED) << status.message();
  EXPECT_EQ(status.message(), "known: 40 trials of job " + first);
  EXPECT_EQ(status.ending(), v1::TRIALS_USED_UP);
  EXPECT_EQ(status.tasks(0).tuned_by_job(), "");
  EXPECT_EQ(status.tasks(0).known_states(), 40u);
  const v1::TaskStatus of_first = Status(first).tasks(0);
  EXPECT_NE(of_first.best_record_id(), 0);
  EXPECT_EQ(status.tasks(0).best_record_id(), of_first.best_record_id());
  EXPECT_EQ(status.tasks(0).best_cost_s(), of_first.best_cost_s());
  EXPECT_EQ(status.tasks(0).reference_record_id(), of_first.reference_record_id());
}

TEST_P(JobsTest, ATaskThatIsKnownIsNotTunedAgain) {
  FakeBuilder builder;
  FakeRunner runner;
  Serve(builder, runner);
  const std::string first = Submit(TestJob(20));
  ASSERT_TRUE(Ends(first));
  const int measured = runner.measured;
  const std::string same = Submit(TestJob(20));
  ASSERT_TRUE(Ends(same));
  EXPECT_EQ(Status(same).message(), "known: 20 trials of job " + first);
  EXPECT_EQ(runner.measured, measured);
  // A larger job adds what is missing.
  const std::string larger = Submit(TestJob(50));
  ASSERT_TRUE(Ends(larger));
  ExpectExactly(larger, 30);
  EXPECT_EQ(Status(larger).message(), "known: 20 trials of job " + first);
  EXPECT_EQ(State(larger), v1::SUCCEEDED);
  // A job that wants no results of others, or searches in another way, tunes all the same.
  v1::JobSpec anew = TestJob(20);
  anew.mutable_options()->set_no_warm_start(true);
  v1::JobSpec seeded = TestJob(20);
  seeded.mutable_options()->set_seed(8);
  for (const v1::JobSpec& spec : {anew, seeded}) {
    const std::string id = Submit(spec);
    ASSERT_TRUE(Ends(id));
    ExpectExactly(id, 20);
    EXPECT_EQ(Status(id).message(), "");
  }
}

TEST_P(JobsTest, AJobWithAnotherTaskDoesNotWaitAndTakesItsShare) {
  FakeBuilder builder;
  std::atomic<bool> hold{true};
  FakeRunner runner(HeldBy(hold));
  Serve(builder, runner);
  const std::string first = Submit(TestJob(40));
  ASSERT_TRUE(Eventually([&] { return State(first) == v1::RUNNING; }));
  v1::JobSpec both = TestJob(20);
  *both.add_tasks() = TestTask(32);
  const std::string second = Submit(both);
  EXPECT_TRUE(Eventually([&] { return State(second) == v1::RUNNING; }));
  ASSERT_OK(jobs_->Cancel(second));
  hold = false;
  ASSERT_TRUE(Ends(first));
  const std::string third = Submit(both);
  ASSERT_TRUE(Ends(third));
  EXPECT_EQ(State(third), v1::SUCCEEDED) << Status(third).message();
  EXPECT_EQ(Status(third).message(), "known: 10 trials of job " + first);
  EXPECT_EQ(Count(third), 10u);
  EXPECT_GT(Status(third).tasks(1).trials(), 0u);
  EXPECT_LE(Status(third).tasks(0).best_cost_s(), Status(first).tasks(0).best_cost_s());
}

TEST_P(JobsTest, IfTheFirstJobIsCancelledTheSecondGoesOnByItself) {
  FakeBuilder builder;
  std::atomic<bool> hold{true};
  FakeRunner runner(HeldBy(hold));
  Serve(builder, runner);
  const std::string first = Submit(TestJob(40));
  ASSERT_TRUE(Eventually([&] { return State(first) == v1::RUNNING; }));
  const std::string second = Submit(TestJob(30));
  EXPECT_EQ(Status(second).tasks(0).tuned_by_job(), first);
  ASSERT_OK(jobs_->Cancel(first));
  hold = false;
  ASSERT_TRUE(Ends(second));
  EXPECT_EQ(State(second), v1::SUCCEEDED) << Status(second).message();
  ExpectExactly(second, 30);
}

TEST_P(JobsTest, IfTheFirstJobIsPausedTheOtherOneTunes) {
  FakeBuilder builder;
  std::atomic<bool> hold{false};
  FakeRunner runner([&](auto& context, const auto&, auto&) {
    absl::SleepFor(absl::Milliseconds(2));
    while (hold && !context.IsCancelled()) absl::SleepFor(absl::Milliseconds(2));
    return grpc::Status::OK;
  });
  Serve(builder, runner);
  const std::string first = Submit(TestJob(60));
  ASSERT_TRUE(Eventually([&] { return Count(first) >= 5; }));
  const std::string second = Submit(TestJob(60));
  EXPECT_EQ(State(second), v1::QUEUED);
  ASSERT_OK(jobs_->Pause(first));
  ASSERT_TRUE(Eventually([&] { return State(second) == v1::RUNNING; }));
  hold = true;
  ASSERT_OK(jobs_->Resume(first));
  EXPECT_EQ(Status(first).tasks(0).tuned_by_job(), second);
  hold = false;
  ASSERT_TRUE(Ends(second));
  ASSERT_TRUE(Ends(first));
  ExpectExactly(second, 60);
  EXPECT_LT(Count(first), 60u);
  EXPECT_EQ(Status(first).message(), "known: 60 trials of job " + second);
}

TEST_P(JobsTest, AJobStillWaitsAfterARestart) {
  FakeBuilder builder;
  std::atomic<bool> hold{true};
  FakeRunner runner(HeldBy(hold));
  Serve(builder, runner);
  v1::JobSpec spec = TestJob(40);
  spec.set_user("zoe");
  const std::string first = Submit(spec);
  ASSERT_TRUE(Eventually([&] { return State(first) == v1::RUNNING; }));
  const std::string second = Submit(TestJob(40));
  ASSERT_EQ(Status(second).tasks(0).tuned_by_job(), first);
  Restart();
  ASSERT_TRUE(Eventually([&] { return State(first) == v1::RUNNING; }));
  EXPECT_EQ(State(second), v1::QUEUED);
  EXPECT_EQ(Status(second).tasks(0).tuned_by_job(), first);
  hold = false;
  ASSERT_TRUE(Ends(second));
  ExpectExactly(first, 40);
  EXPECT_EQ(Count(second), 0u);
  // Another restart changes nothing about it.
  Restart();
  EXPECT_EQ(Status(second).tasks(0).best_record_id(), Status(first).tasks(0).best_record_id());
}

TEST_P(JobsTest, AMoreUrgentJobDoesNotWait) {
  FakeBuilder builder;
  std::atomic<bool> hold{true};
  FakeRunner runner(HeldBy(hold));
  Serve(builder, runner);
  const std::string first = Submit(TestJob(10));
  ASSERT_TRUE(Eventually([&] { return State(first) == v1::RUNNING; }));
  v1::JobSpec spec = TestJob(10);
  spec.set_priority(1);
  const std::string urgent = Submit(spec);
  EXPECT_TRUE(Eventually([&] { return State(urgent) == v1::RUNNING; }));
  const std::string third = Submit(TestJob(10));
  EXPECT_EQ(Status(third).tasks(0).tuned_by_job(), urgent);
  hold = false;
  for (const std::string& id : {first, urgent, third}) ASSERT_TRUE(Ends(id));
}

}  // namespace
}  // namespace kiln::scheduler
