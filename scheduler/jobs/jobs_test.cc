#include <cmath>

#include "base/hash/digest.h"
#include "scheduler/jobs/jobs_testing.h"

namespace kiln::scheduler {
namespace {

using testing::AllOf;
using testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(Stores, JobsTest, testing::Values(false, true), StoreName);

TEST_P(JobsTest, AllRunnersOfAJobServeTheDeviceItNames) {
  FakeBuilder builder;
  FakeRunner runner;
  Serve(builder, runner);
  v1::JobSpec spec = TestJob(3);
  spec.set_device("GPU-bb");
  EXPECT_TRUE(Ends(Submit(spec)));
  int runners = 0;
  for (const LeaseSpec& spec : cluster_.specs()) {
    if (spec.kind == v1::BUILDER) {
      EXPECT_EQ(spec.key, "null");
    }
    if (spec.kind != v1::RUNNER) continue;
    EXPECT_EQ(spec.key, "GPU-bb");
    ++runners;
  }
  EXPECT_GE(runners, 2) << "the first one and those that measure";
}

TEST_P(JobsTest, AFullJob) {
  FakeBuilder builder;
  FakeRunner runner;
  Serve(builder, runner);
  const std::string id = Submit(TestJob(50));
  ASSERT_TRUE(Ends(id));
  const v1::JobStatus status = Status(id);
  EXPECT_EQ(status.state(), v1::SUCCEEDED) << status.message();
  EXPECT_EQ(status.message(), "");
  EXPECT_EQ(status.ending(), v1::TRIALS_USED_UP);
  EXPECT_EQ(status.trials_done(), 50u);
  EXPECT_EQ(status.device(), "fake device");
  EXPECT_EQ(status.spec().user(), "ada");
  ASSERT_EQ(status.tasks_size(), 1);
  EXPECT_EQ(status.tasks(0).trials(), 50u);
  EXPECT_EQ(status.tasks(0).reference_cost_s(), 5e-3) << "too slow to be a candidate";
  EXPECT_EQ(status.tasks(0).reference_record_id(), 0);
  EXPECT_THAT(store_->RecordsOfJob(id, 0)->front().origin, HasSubstr("heuristic schedule, "));
  ExpectExactly(id, 50);
  double best = 1;
  const auto records = *store_->RecordsOfJob(id, 0);
  for (const auto& r : records) {
    best = std::min(best, store::MeanCost(r));
    EXPECT_EQ(r.hardware[0], 4);
    EXPECT_EQ(r.device_model, "cores=4 name=fake device");
    EXPECT_EQ(r.target, "null");
  }
  EXPECT_EQ(status.tasks(0).best_cost_s(), best);
  EXPECT_EQ(runner.measured, 50);
  // All leases are given back.
  EXPECT_TRUE(Eventually([&] { return cluster_.runners.held() + cluster_.builders.held() == 0; }));
}

// The job reports the fit, whether the constants are better or stay as they are.
TEST_P(JobsTest, AJobThatCalibratesFitsTheDevicesConstants) {
  FakeBuilder builder;
  FakeRunner runner;
  Serve(builder, runner);
  v1::JobSpec spec = TestJob(100);
  *spec.add_tasks() = TestTask(32);
  spec.mutable_options()->set_calibrate(true);
  const std::string id = Submit(spec);
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), v1::SUCCEEDED) << Status(id).message();
  EXPECT_THAT(Status(id).message(),
              testing::AllOf(testing::HasSubstr("fake device: "),
                             testing::HasSubstr("of workloads left out of the fit")));
  const bool stay = Status(id).message().find("stay as they are") != std::string::npos;
  EXPECT_EQ(store_->Calibrations()->size(), stay ? 0u : 1u);
  ExpectExactly(id, 100);
}

TEST_P(JobsTest, SaysWhatItsDeviceIsTakenFor) {
  FakeBuilder builder;
  FakeRunner runner(Slow(20));
  AddBuilder(builder);
  AddRunner(runner);
  v1::WorkerState gpu = runner.workers.back()->state();
  gpu.mutable_device_model()->set_name("Small GPU");
  gpu.mutable_device_model()->set_compute_capability(75);
  gpu.mutable_device_model()->set_multiprocessors(20);
  cluster_.runners.RemoveWorker(gpu.id());
  cluster_.runners.AddWorker(gpu);
  Start();
  const std::string id = Submit(TestJob(50));
  EXPECT_TRUE(Eventually([&] { return Status(id).notices_size() > 0; }));
  EXPECT_THAT(Status(id).notices(0),
              testing::AllOf(testing::HasSubstr("Small GPU (capability 7.5, 20 multiprocessors"),
                             testing::HasSubstr("derived from the device's own numbers")));
}

// A runner of an older version announces no device model. The job says why it does not use the
// runner.
TEST_P(JobsTest, ARunnerWithoutADeviceModelIsLeftAlone) {
  FakeBuilder builder;
  FakeRunner runner;
  AddBuilder(builder);
  AddRunner(runner);
  v1::WorkerState old = runner.workers.back()->state();
  old.clear_device_model();
  cluster_.runners.RemoveWorker(old.id());
  cluster_.runners.AddWorker(old);
  Start();
  const std::string id = Submit(TestJob(3));
  EXPECT_TRUE(Eventually([&] {
    return Status(id).message().find("announces no device model") != std::string::npos;
  })) << Status(id).message();
}

TEST_P(JobsTest, TasksTakeTurns) {
  FakeBuilder builder;
  FakeRunner runner;
  Serve(builder, runner);
  v1::JobSpec spec = TestJob(30);
  *spec.add_tasks() = TestTask(32);
  *spec.add_tasks() = TestTask(48);
  spec.mutable_options()->set_task_strategy("round-robin");
  spec.mutable_options()->set_trials_per_round(5);
  const std::string id = Submit(spec);
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), v1::SUCCEEDED);
  const v1::JobStatus status = Status(id);
  for (const v1::TaskStatus& task : status.tasks()) {
    EXPECT_NEAR(task.trials(), 10, 2);  // rounds of 2, 4, and 5
    EXPECT_GT(task.best_cost_s(), 0);
    EXPECT_GT(task.best_record_id(), 0);
  }
  ExpectExactly(id, 30);
}

TEST_P(JobsTest, NumbersOfTheGradientChooseTheTasks) {
  FakeBuilder builder;
  FakeRunner runner;
  Serve(builder, runner);
  using Options = v1::TuneOptions;
  // Returns the task of each trial.
  const auto tasks_of = [&](const std::function<void(Options&)>& set) {
    v1::JobSpec spec = TestJob(60);
    *spec.add_tasks() = TestTask(32);
    spec.mutable_options()->set_trials_per_round(4);
    spec.mutable_options()->set_no_warm_start(true);
    set(*spec.mutable_options());
    const std::string id = Submit(spec);
    EXPECT_TRUE(Ends(id));
    std::string tasks;
    const auto records = *store_->RecordsOfJob(id, 0);
    for (const store::Record& record : records) tasks += std::to_string(record.task_index);
    return tasks;
  };
  const std::string usual = tasks_of([](Options&) {});
  EXPECT_EQ(tasks_of([](Options& o) {
              o.set_task_alpha(0.2);
              o.set_task_beta(2);
              o.set_task_window(3);
            }),
            usual);
  const std::string of_past = tasks_of([](Options& o) { o.set_task_alpha(1); });
  EXPECT_NE(of_past, usual);
  EXPECT_NE(tasks_of([](Options& o) {
              o.set_task_alpha(1);
              o.set_task_window(1);
            }),
            of_past);
}

// The model ranks as soon as it has the results that the job says, and not before.
TEST_P(JobsTest, AJobSaysWhenItsModelIsTrained) {
  FakeBuilder builder;
  FakeRunner runner;
  Serve(builder, runner);
  // Returns the first round that the learned model ranks.
  const auto first_round = [&](std::optional<double> min_samples) {
    v1::JobSpec spec = TestJob(48);
    v1::TuneOptions& options = *spec.mutable_options();
    options.set_policy("sketch.xgb");
    options.set_trials_per_round(8);
    options.set_no_warm_start(true);
    auto& parameters = *options.mutable_policy_parameters();
    parameters["evolutionary_search_population"] = 32;
    parameters["sample_init_population"] = 16;
    parameters["prior_round"] = 0;
    if (min_samples) (*options.mutable_model_parameters())["min_samples"] = *min_samples;
    const std::string id = Submit(spec);
    EXPECT_TRUE(Ends(id));
    const auto rounds = *store_->RoundsOfJob(id, 0);
    const auto first = std::ranges::find_if(rounds, [](const store::RoundRow& round) {
      return round.report.find("ranked by xgb") != std::string::npos;
    });
    return 1 + (first - rounds.begin());
  };
  EXPECT_EQ(first_round(6), 2);
  EXPECT_EQ(first_round({}), 3) << "16 results";
  EXPECT_EQ(first_round(33), 6);
}

// Each task has a measured schedule before any is tuned. Until then the objective is an estimate.
TEST_P(JobsTest, AllTasksAreOpenedBeforeAnyIsTuned) {
  FakeBuilder builder;
  std::atomic<int> allowed{2}, served{0};
  FakeRunner runner([&](auto& context, const auto&, auto&) {
    while (served >= allowed && !context.IsCancelled()) absl::SleepFor(absl::Milliseconds(5));
    ++served;
    return grpc::Status::OK;
  });
  Serve(builder, runner);
  v1::JobSpec spec = TestJob(60);
  *spec.add_tasks() = TestTask(32);
  *spec.add_tasks() = TestTask(128);
  const std::string id = Submit(spec);
  ASSERT_TRUE(Eventually([&] { return Count(id) == 2; }));
  ASSERT_TRUE(Eventually([&] {
    return Status(id).phase().find("(1 of 3 tasks") != std::string::npos;
  })) << Status(id).phase();
  EXPECT_THAT(Status(id).phase(), testing::StartsWith("about "));
  allowed = 1'000;
  ASSERT_TRUE(Ends(id));
  const auto records = *store_->RecordsOfJob(id, 0);
  ASSERT_EQ(records.size(), 60u);
  std::vector<uint32_t> opened;
  for (size_t i = 0; i < 3; ++i) {
    opened.push_back(records[i].task_index);
    EXPECT_THAT(records[i].origin, testing::StartsWith("heuristic schedule, "));
  }
  EXPECT_THAT(opened, testing::ElementsAre(2, 0, 1)) << "the heaviest first";
  EXPECT_EQ(Status(id).phase(), "");
}

TEST_P(JobsTest, FewerTrialsThanTasksAreForTheHeaviest) {
  FakeBuilder builder;
  FakeRunner runner(Slow(30));
  Serve(builder, runner);
  v1::JobSpec spec = TestJob(2);
  *spec.add_tasks() = TestTask(32);
  *spec.add_tasks() = TestTask(128);
  const std::string id = Submit(spec);
  EXPECT_TRUE(Eventually([&] { return Status(id).notices_size() > 0; }));
  EXPECT_THAT(Status(id).notices(0), AllOf(HasSubstr("2 trials are fewer than the 3 tasks"),
                                           HasSubstr("48 trials, 16 for")));
  ASSERT_TRUE(Ends(id));
  const auto records = *store_->RecordsOfJob(id, 0);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].task_index, 2u);
  EXPECT_EQ(records[1].task_index, 0u);
}

TEST_P(JobsTest, TrialsGoWhereTheyAreWorthMost) {
  FakeBuilder builder;
  FakeRunner runner([](auto&, const v1::MeasureRequest& request, v1::MeasureReply& reply) {
    reply.mutable_result()->add_costs_s(FakeRunner::CostOf(request.artifact().binary()));
    reply.mutable_result()->set_run_s(1e-3);
    return grpc::Status::OK;
  });
  Serve(builder, runner);
  v1::JobSpec spec = TestJob(64);
  spec.mutable_tasks(0)->set_weight(100);
  *spec.add_tasks() = TestTask(32);
  spec.mutable_options()->set_trials_per_round(4);
  const std::string id = Submit(spec);
  ASSERT_TRUE(Ends(id));
  const v1::JobStatus status = Status(id);
  EXPECT_EQ(status.tasks(0).trials() + status.tasks(1).trials(), 64u);
  EXPECT_GT(status.tasks(0).trials(), 50u);
  EXPECT_GE(status.tasks(1).trials(), 1u);
  EXPECT_EQ(status.devices(), 1u);
  EXPECT_GT(status.busy_share(), 0);
  // The latency log has a line for each round.
  ASSERT_OK_AND_ASSIGN(const auto rounds, store_->RoundsOfJob(id, 0));
  ASSERT_EQ(rounds.size(), 18u);  // two of one trial, and those of four
  EXPECT_EQ(rounds.back().trials, 64u);
  EXPECT_FALSE(rounds[0].total_latency_s.has_value());
  for (size_t i = 1; i < rounds.size(); ++i) {
    const double total_s = rounds[i].total_latency_s.value();
    EXPECT_NEAR(total_s, 100 * *rounds[i].best_s[0] + *rounds[i].best_s[1], 1e-12);
    EXPECT_LE(total_s, rounds[i - 1].total_latency_s.value_or(1));
    EXPECT_FALSE(rounds[i].report.empty());
  }
  EXPECT_EQ(rounds.back().best_s[0], status.tasks(0).best_cost_s());
}

// One variant is four times slower. The job is stopped in the middle, and goes on in the same way.
TEST_P(JobsTest, TheFasterAlternativeHasTheTrials) {
  v1::JobSpec spec = TestJob(96);
  *spec.add_tasks() = TestAlternative(0);
  *spec.add_tasks() = TestTask(32);
  spec.mutable_tasks(0)->set_weight(2);
  spec.mutable_options()->set_trials_per_round(4);
  spec.mutable_options()->set_objective("geometric-mean");
  const std::string direct = Sha256Hex(CheckJobSpec(spec)->spec.tasks(0).dag() + "[]");
  FakeBuilder builder;
  FakeRunner runner([&](auto&, const v1::MeasureRequest& request, v1::MeasureReply& reply) {
    const double factor = request.reference_digest() == direct ? 4 : 1;
    reply.mutable_result()->add_costs_s(factor * FakeRunner::CostOf(request.artifact().binary()));
    return grpc::Status::OK;
  });
  Serve(builder, runner);
  const std::string id = Submit(spec);
  ASSERT_TRUE(Eventually([&] { return Count(id) >= 30; }));
  Restart();
  ASSERT_TRUE(Ends(id));
  const v1::JobStatus status = Status(id);
  EXPECT_EQ(status.state(), v1::SUCCEEDED) << status.message();
  ExpectExactly(id, 96);
  EXPECT_GE(status.tasks(0).trials(), 4u);  // its first round
  EXPECT_LE(status.tasks(0).trials(), 16u);
  EXPECT_GE(status.tasks(1).trials(), 28u);
  EXPECT_GE(status.tasks(2).trials(), 16u);
  EXPECT_EQ(status.tasks(1).spec().alternative_of(), 0u);
  EXPECT_EQ(status.tasks(1).spec().variant(), "turned");
  EXPECT_EQ(status.tasks(1).spec().preparation(), "p1 = nothing");
  EXPECT_FALSE(status.tasks(0).spec().has_alternative_of());
  // The log has the objective: only the faster variant counts, with a weight of two.
  ASSERT_OK_AND_ASSIGN(const auto rounds, store_->RoundsOfJob(id, 0));
  const std::vector<std::optional<double>>& best_s = rounds.back().best_s;
  ASSERT_EQ(best_s.size(), 3u);
  EXPECT_LT(best_s[1].value(), best_s[0].value());
  EXPECT_NEAR(rounds.back().total_latency_s.value(),
              std::cbrt(best_s[1].value() * best_s[1].value() * best_s[2].value()), 1e-9);
}

TEST_P(JobsTest, TheSameSeedGivesTheSameRun) {
  int runs = 0;
  const auto run = [&](int slots) {
    FakeBuilder builder;
    FakeRunner runner;
    AddBuilder(builder, fmt::format("b{}", ++runs), static_cast<uint32_t>(slots));
    AddRunner(runner, fmt::format("r{}", runs));
    Start();
    v1::JobSpec spec = TestJob(40);
    *spec.add_tasks() = TestTask(32);
    spec.mutable_options()->set_trials_per_round(8);
    // Else each run would know the results of the last one.
    spec.mutable_options()->set_no_warm_start(true);
    const std::string id = Submit(spec);
    EXPECT_TRUE(Ends(id));
    std::vector<std::string> steps;
    const auto records = *store_->RecordsOfJob(id, 0);
    for (const auto& r : records) {
      steps.push_back(fmt::format("{} {}", r.task_index, r.steps));
    }
    jobs_.reset();
    cluster_.builders.RemoveWorker(fmt::format("b{}", runs));
    cluster_.runners.RemoveWorker(fmt::format("r{}", runs));
    return steps;
  };
  const auto first = run(1);
  EXPECT_EQ(first.size(), 40u);
  EXPECT_EQ(run(1), first);
  EXPECT_EQ(run(4), first);
}

TEST_P(JobsTest, WaitsForWorkersAndSaysSo) {
  Start();
  const std::string id = Submit(TestJob(5));
  EXPECT_TRUE(Eventually([&] { return Status(id).waiting_for_workers() == 1; }));
  FakeRunner runner;
  AddRunner(runner);
  EXPECT_TRUE(Eventually([&] { return Status(id).device() == "fake device"; }));
  EXPECT_TRUE(Eventually([&] { return Status(id).waiting_for_workers() == 1; }));
  FakeBuilder builder;
  AddBuilder(builder);
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(Status(id).waiting_for_workers(), 0u);
  ExpectExactly(id, 5);
}

TEST_P(JobsTest, CancelInTheMiddle) {
  FakeBuilder builder;
  FakeRunner runner(Slow(5));
  Serve(builder, runner);
  const std::string id = Submit(TestJob(100'000));
  ASSERT_TRUE(Eventually([&] { return Count(id) >= 10; }));
  ASSERT_OK(jobs_->Cancel(id));
  EXPECT_EQ(State(id), v1::CANCELLED);
  EXPECT_TRUE(Eventually([&] { return cluster_.runners.held() + cluster_.builders.held() == 0; }));
  ASSERT_OK(jobs_->Cancel(id));  // a second cancel
  jobs_->Stop();                 // results that were measured are committed by then
  const size_t count = Count(id);
  EXPECT_LT(count, 1'000u);
  Restart();
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(State(id), v1::CANCELLED);
  EXPECT_EQ(Count(id), count);
}

TEST_P(JobsTest, CancelWhileItWaits) {
  Start(1);
  const std::string waiting = Submit(TestJob(5));  // waits for a worker
  const std::string queued = Submit(TestJob(5));
  EXPECT_TRUE(Eventually([&] { return State(waiting) == v1::RUNNING; }));
  EXPECT_EQ(State(queued), v1::QUEUED);
  ASSERT_OK(jobs_->Cancel(queued));
  ASSERT_OK(jobs_->Cancel(waiting));
  EXPECT_EQ(State(queued), v1::CANCELLED);
  EXPECT_EQ(State(waiting), v1::CANCELLED);
  EXPECT_THAT(jobs_->Cancel("nobody"), StatusIs(StatusCode::kNotFound, HasSubstr("nobody")));
}

TEST_P(JobsTest, AFinishedJobCannotBeCancelled) {
  FakeBuilder builder;
  FakeRunner runner;
  Serve(builder, runner);
  const std::string id = Submit(TestJob(3));
  ASSERT_TRUE(Ends(id));
  EXPECT_THAT(jobs_->Cancel(id),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("already succeeded")));
}

TEST_P(JobsTest, AJobWithoutOneCorrectProgramFails) {
  FakeBuilder builder;
  FakeRunner runner([](auto&, const auto&, v1::MeasureReply& reply) {
    reply.mutable_result()->set_error(v1::WRONG_ANSWER_ERROR);
    return grpc::Status::OK;
  });
  Serve(builder, runner);
  const std::string id = Submit(TestJob(5));
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), v1::FAILED);
  EXPECT_THAT(Status(id).message(), AllOf(HasSubstr("none of the 5"), HasSubstr("WRONG_ANSWER")));
  EXPECT_EQ(Status(id).error_counts().at(v1::WRONG_ANSWER_ERROR), 5u);
}

TEST_P(JobsTest, TwoJobsShareTheWorkers) {
  FakeBuilder builder;
  FakeRunner r1(Slow(2)), r2(Slow(2));
  AddBuilder(builder, "b1", 4);
  AddRunner(r1, "r1");
  AddRunner(r2, "r2");
  Start();
  v1::JobSpec other = TestJob(40);
  other.mutable_options()->set_seed(8);
  const std::string a = Submit(TestJob(40));
  const std::string b = Submit(other);
  ASSERT_TRUE(Ends(a));
  ASSERT_TRUE(Ends(b));
  ExpectExactly(a, 40);
  ExpectExactly(b, 40);
  EXPECT_EQ(r1.measured + r2.measured, 80);
}

TEST_P(JobsTest, UrgentJobsGoFirst) {
  FakeBuilder builder;
  FakeRunner runner(Slow(1));
  AddBuilder(builder);
  Start(1);
  const std::string first = Submit(TestJob(3));
  ASSERT_TRUE(Eventually([&] { return State(first) == v1::RUNNING; }));
  const std::string normal = Submit(TestJob(3));
  v1::JobSpec urgent_spec = TestJob(3);
  urgent_spec.set_priority(5);
  const std::string urgent = Submit(urgent_spec);
  AddRunner(runner);
  for (const auto& id : {first, normal, urgent}) ASSERT_TRUE(Ends(id));
  EXPECT_LE(store_->GetJob(urgent)->finished_ms, store_->GetJob(normal)->started_ms);
}

TEST_P(JobsTest, ARunnerThatAnnouncesNonsenseIsNotUsed) {
  FakeBuilder builder;
  FakeRunner good, bad;
  AddBuilder(builder);
  cluster_.AddRunner(bad, "a-bad", "vax -fast");
  Start();
  const std::string id = Submit(TestJob(3));
  EXPECT_TRUE(Eventually([&] {
    return Status(id).message().find("announces the target 'vax -fast'") != std::string::npos;
  }));
  cluster_.runners.RemoveWorker("a-bad");
  AddRunner(good, "b-good");
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), v1::SUCCEEDED);
  EXPECT_EQ(bad.calls, 0);
}

}  // namespace
}  // namespace kiln::scheduler
