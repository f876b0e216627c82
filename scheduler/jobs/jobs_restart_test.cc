// The knowledge of a scheduler that starts again, and the results of earlier jobs.
#include <atomic>
#include <map>
#include <set>

#include "scheduler/jobs/jobs_testing.h"

namespace kiln::scheduler {
namespace {

using testing::AllOf;
using testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(Stores, JobsTest, testing::Values(false, true), StoreName);

TEST_P(JobsTest, ARestartInTheMiddleLosesAndRepeatsNothing) {
  FakeBuilder builder;
  FakeRunner runner(Slow(3));
  AddBuilder(builder);
  AddRunner(runner, "r1");
  FakeRunner other(Slow(7));
  AddRunner(other, "r2");
  Start();
  v1::JobSpec spec = TestJob(120);
  *spec.add_tasks() = TestTask(32);
  const std::string id = Submit(spec);
  for (const size_t stop_at : {7u, 30u, 31u, 90u}) {
    ASSERT_TRUE(Eventually([&] { return Count(id) >= stop_at; }));
    Restart();
    EXPECT_TRUE(Eventually([&] { return State(id) == v1::RUNNING; }));
  }
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), v1::SUCCEEDED) << Status(id).message();
  ExpectExactly(id, 120);
  EXPECT_EQ(Status(id).tasks(0).trials() + Status(id).tasks(1).trials(), 120u);
}

// Returns a job of the learned search with quick rounds.
v1::JobSpec LearnedJob(uint32_t trials, int size = 64) {
  v1::JobSpec spec = TestJob(trials);
  *spec.mutable_tasks(0) = TestTask(size);
  v1::TuneOptions& options = *spec.mutable_options();
  options.set_policy("sketch.xgb");
  options.set_trials_per_round(16);
  auto& parameters = *options.mutable_policy_parameters();
  parameters["evolutionary_search_population"] = 64;
  parameters["sample_init_population"] = 32;
  return spec;
}

TEST_P(JobsTest, ALaterJobKnowsWhatAnEarlierOneMeasured) {
  FakeBuilder builder;
  std::atomic<bool> hold{false};
  FakeRunner runner([&](auto& context, const auto&, auto&) {
    while (hold && !context.IsCancelled()) absl::SleepFor(absl::Milliseconds(5));
    return grpc::Status::OK;
  });
  Serve(builder, runner);
  const std::string first = Submit(LearnedJob(48));
  ASSERT_TRUE(Ends(first));
  const auto best = *store_->BestOfJob(first, 0);
  ASSERT_TRUE(best.has_value());
  std::set<std::string> measured;
  const auto records = *store_->RecordsOfJob(first, 0);
  for (const auto& r : records) measured.insert(r.steps);
  EXPECT_EQ(Status(first).tasks(0).known_states(), 0u);

  // A job of the same workload reports the known results before its first trial.
  hold = true;
  v1::JobSpec seeded = LearnedJob(32);
  seeded.mutable_options()->set_seed(8);
  const std::string again = Submit(seeded);
  ASSERT_TRUE(Eventually([&] { return Status(again).tasks(0).known_states() > 0; }));
  const v1::TaskStatus known = Status(again).tasks(0);
  EXPECT_EQ(known.trials(), 0u);
  EXPECT_EQ(known.known_states(), 48u);
  EXPECT_EQ(known.known_record_id(), best->id);
  EXPECT_EQ(known.known_cost_s(), store::Cost(*best));
  hold = false;
  ASSERT_TRUE(Ends(again));
  ExpectExactly(again, 32);
  int of_earlier = 0;
  const auto later = *store_->RecordsOfJob(again, 0);
  for (const auto& r : later) {
    EXPECT_FALSE(measured.contains(r.steps)) << "trial " << r.trial << " was measured before";
    of_earlier += r.origin.find("from record ") != std::string::npos;
  }
  EXPECT_GT(of_earlier, 8) << "few are changes of what was known";
  EXPECT_THAT(store_->RoundsOfJob(again, 0)->front().report, HasSubstr("ranked by xgb"));

  // For another workload the job's own results have to come first while few workloads are known.
  // With more of them the model ranks from the start.
  for (const int size : {96, 48}) {
    const std::string other = Submit(LearnedJob(100, size));
    ASSERT_TRUE(Ends(other));
    EXPECT_THAT(store_->RoundsOfJob(other, 0)->front().report, HasSubstr("ranked by analytic"));
    EXPECT_THAT(store_->RoundsOfJob(other, 0)->back().report, HasSubstr("ranked by xgb"));
  }
  const std::string other = Submit(LearnedJob(16, 80));
  ASSERT_TRUE(Ends(other));
  ExpectExactly(other, 16);
  EXPECT_THAT(store_->RoundsOfJob(other, 0)->front().report, HasSubstr("ranked by xgb"));

  v1::JobSpec cold = LearnedJob(16);
  cold.mutable_options()->set_no_warm_start(true);
  const std::string alone = Submit(cold);
  ASSERT_TRUE(Ends(alone));
  EXPECT_THAT(store_->RoundsOfJob(alone, 0)->front().report, HasSubstr("ranked by analytic"));
  EXPECT_EQ(store_->RecordsOfJob(alone, 0)->front().steps, records.front().steps);
}

TEST_P(JobsTest, ALearnedSearchGoesOnAfterARestart) {
  FakeBuilder builder;
  FakeRunner runner(Slow(1));
  Serve(builder, runner);
  const std::string before = Submit(LearnedJob(16, 96));
  ASSERT_TRUE(Ends(before));
  const std::string id = Submit(LearnedJob(96));
  ASSERT_TRUE(Eventually([&] { return Count(id) >= 50; }));
  jobs_.reset();
  const auto kept = *store_->RecordsOfJob(id, 0);
  ASSERT_LT(kept.size(), 96u);
  const size_t rounds = store_->RoundsOfJob(id, 0)->size();
  Restart();
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), v1::SUCCEEDED) << Status(id).message();
  ExpectExactly(id, 96);
  std::map<uint32_t, std::string> steps;
  const auto records = *store_->RecordsOfJob(id, 0);
  for (const auto& r : records) steps[r.trial] = r.steps;
  for (const auto& r : kept) EXPECT_EQ(steps[r.trial], r.steps) << "trial " << r.trial;
  // The resumed job has learned all earlier results before its first round.
  const auto report = store_->RoundsOfJob(id, static_cast<uint32_t>(rounds))->front().report;
  EXPECT_THAT(report, AllOf(HasSubstr("round 1:"), HasSubstr("ranked by xgb")));
}

// Returns a job that searches a template. Its model sees the features that computations share.
v1::JobSpec TemplateJob(uint32_t trials, int size) {
  v1::JobSpec spec = LearnedJob(trials, size);
  v1::TuneOptions& options = *spec.mutable_options();
  options.set_policy("template.xgb");
  options.set_schedule_template(
      "template tiles for cpu\nstage C = reduction()\ni, j = axes(C)\n"
      "knob tile_i = split(i, outputs=2)\nknob tile_j = split(j, outputs=3)\n"
      "a, b = split(i, tile_i)\nc, d, e = split(j, tile_j)\n");
  auto& parameters = *options.mutable_policy_parameters();
  parameters.clear();
  parameters["template_curve_features"] = 1;
  parameters["template_least_history"] = 20;
  parameters["template_plan_size"] = 16;
  return spec;
}

TEST_P(JobsTest, ATemplateSearchLearnsFromOtherComputationsAlsoAfterARestart) {
  FakeBuilder builder;
  std::atomic<int> served{0}, allowed{1'000'000};
  FakeRunner runner([&](auto& context, const auto&, auto&) {
    while (served >= allowed && !context.IsCancelled()) absl::SleepFor(absl::Milliseconds(5));
    ++served;
    return grpc::Status::OK;
  });
  Serve(builder, runner);
  const std::string first = Submit(TemplateJob(33, 64));
  ASSERT_TRUE(Ends(first));
  const std::string said =
      "template tiles: the search begins with a model of 31 earlier results: matmul (31)";
  allowed = served.load();
  const std::string id = Submit(TemplateJob(40, 32));
  ASSERT_TRUE(Eventually([&] { return Status(id).notices_size() == 1; }));
  EXPECT_EQ(Status(id).notices(0), said);
  allowed = served + 10;
  ASSERT_TRUE(Eventually([&] { return Count(id) >= 10; }));
  Restart();
  ASSERT_TRUE(Eventually([&] { return Status(id).notices_size() == 1; }));
  EXPECT_EQ(Status(id).notices(0), said) << "the same as before";
  allowed = 1'000'000;
  ASSERT_TRUE(Ends(id));
  ExpectExactly(id, 40);

  // The same job by another seed measures nothing twice.
  std::set<std::string> measured;
  const auto records = *store_->RecordsOfJob(id, 0);
  for (const auto& r : records) measured.insert(r.steps);
  v1::JobSpec seeded = TemplateJob(40, 32);
  seeded.mutable_options()->set_seed(8);
  const std::string again = Submit(seeded);
  ASSERT_TRUE(Ends(again));
  ExpectExactly(again, 40);
  const auto later = *store_->RecordsOfJob(again, 0);
  for (const auto& r : later) EXPECT_FALSE(measured.contains(r.steps)) << r.origin;
}

TEST_P(JobsTest, ASpaceThatIsUsedUpByAnEarlierJob) {
  FakeBuilder builder;
  FakeRunner runner;
  Serve(builder, runner);
  v1::JobSpec spec = LearnedJob(10'000);
  spec.mutable_tasks(0)->set_dag("input A: float32[2]\nB[i: 2] = A[i] + 1.0\n");
  const std::string first = Submit(spec);
  ASSERT_TRUE(Ends(first));
  const std::string again = Submit(spec);
  ASSERT_TRUE(Ends(again));
  EXPECT_EQ(State(again), v1::SUCCEEDED) << Status(again).message();
  EXPECT_EQ(Count(again), 0u) << "nor what is measured first";
  EXPECT_THAT(Status(again).message(), HasSubstr("no candidates are left"));
}

TEST_P(JobsTest, GapsInTheTrialNumbersAreFilled) {
  Start();
  const std::string id = Submit(TestJob(20));
  jobs_.reset();
  // A process leaves these records if it dies with trials 0, 2 and 5 done.
  for (const uint32_t trial : {0u, 2u, 5u}) {
    store::Record record;
    record.job_id = id;
    record.trial = trial;
    record.target = "null";
    record.steps = "[]";
    record.costs_s = {1e-4};
    ASSERT_OK(store_->AddRecord(record));
  }
  FakeBuilder builder;
  FakeRunner runner;
  Serve(builder, runner);
  ASSERT_TRUE(Ends(id));
  const auto records = *store_->RecordsOfJob(id, 0);
  ASSERT_EQ(records.size(), 20u);
  for (uint32_t i = 0; i < 20; ++i) EXPECT_EQ(records[i].trial, i);
  EXPECT_EQ(runner.measured, 17);
}

TEST_P(JobsTest, AJobThatWasDoneWhenTheProcessDiedNeedsNoWorker) {
  Start();
  const std::string id = Submit(TestJob(1));
  jobs_.reset();
  store::Record record;
  record.job_id = id;
  record.costs_s = {1e-4};
  ASSERT_OK(store_->AddRecord(record));
  Start();
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), v1::SUCCEEDED);
}

TEST_P(JobsTest, AJobThatFailedWhenTheProcessDiedIsNoSuccess) {
  Start();
  const std::string id = Submit(TestJob(1));
  jobs_.reset();
  store::Record record;
  record.job_id = id;
  record.error = v1::RUN_TIMEOUT_ERROR;
  ASSERT_OK(store_->AddRecord(record));
  Start();
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), v1::FAILED);
  EXPECT_THAT(Status(id).message(), HasSubstr("RUN_TIMEOUT_ERROR"));
}

}  // namespace
}  // namespace kiln::scheduler
