// The ends of jobs: their final race, and each of the reasons.
#include <atomic>
#include <map>

#include "scheduler/jobs/jobs_testing.h"

namespace kiln::scheduler {
namespace {

using testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(Stores, JobsTest, testing::Values(false, true), StoreName);

// Holds the readings of the final race until `hold` is cleared. `again` counts them.
FakeRunner::Hook HeldInFinalRace(const std::atomic<bool>& hold, std::atomic<int>& again) {
  return [&](auto& context, const v1::MeasureRequest& request, auto&) {
    const bool final = request.options().repeat() > 1;
    while (final && hold && !context.IsCancelled()) absl::SleepFor(absl::Milliseconds(5));
    again += final;
    return grpc::Status::OK;
  };
}

TEST_P(JobsTest, NeverEndsSlowerThanTheUnscheduledLoops) {
  FakeBuilder builder;
  FakeRunner runner([](auto&, const v1::MeasureRequest& request, v1::MeasureReply& reply) {
    const bool unscheduled = request.artifact().binary() == "[]";
    reply.mutable_result()->add_costs_s(
        unscheduled ? 0.9e-3 : FakeRunner::CostOf(request.artifact().binary()));
    reply.set_reference_cost_s(1e-3);
    return grpc::Status::OK;
  });
  Serve(builder, runner);
  v1::JobSpec spec = TestJob(20);
  spec.mutable_options()->set_finalists(2);
  const std::string id = Submit(spec);
  ASSERT_TRUE(Ends(id));
  ExpectExactly(id, 20);
  const v1::TaskStatus task = Status(id).tasks(0);
  EXPECT_EQ(task.best_record_id(), task.reference_record_id());
  EXPECT_EQ(task.best_cost_s(), 0.9e-3);
  EXPECT_EQ(task.reference_cost_s(), 0.9e-3);
  EXPECT_EQ(store_->GetRecord(task.best_record_id())->steps, "[]");
}

// The unscheduled loops, and the schedules that were chosen without measuring, are read beside the
// winner, even if other candidates were faster.
TEST_P(JobsTest, WhatIsThereWithoutTuningIsInTheFinalRace) {
  FakeBuilder builder;
  std::atomic<double> unscheduled_s{1.1e-3};
  FakeRunner runner([&](auto&, const v1::MeasureRequest& request, v1::MeasureReply& reply) {
    const std::string& steps = request.artifact().binary();
    const double cost_s = 0.95e-3 + 0.02 * FakeRunner::CostOf(steps);
    reply.mutable_result()->add_costs_s(steps == "[]" ? unscheduled_s.load() : cost_s);
    reply.set_reference_cost_s(unscheduled_s);
    return grpc::Status::OK;
  });
  Serve(builder, runner);
  v1::JobSpec spec = TestJob(12);
  spec.mutable_options()->set_finalists(2);
  const auto finals_of = [&](const std::string& id) {
    // Heuristic schedules; whether the unscheduled loops.
    std::pair<int, bool> remeasured{0, false};
    const std::vector<store::Record> records = *store_->RecordsOfJob(id, 0);
    for (const store::Record& r : records) {
      remeasured.first +=
          r.origin.starts_with("heuristic schedule, ") && !r.remeasured_costs_s.empty();
      remeasured.second |= r.steps == store::kNoSteps && !r.remeasured_costs_s.empty();
    }
    return remeasured;
  };
  std::string id = Submit(spec);
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(finals_of(id), std::pair(2, true));
  // Unscheduled loops that are much slower are left out.
  unscheduled_s = 2e-3;
  *spec.mutable_tasks(0) = TestTask(32);
  id = Submit(spec);
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(finals_of(id), std::pair(2, false));
}

// The loops take 137 GFLOP, so it is known before anything runs that they take long.
TEST_P(JobsTest, ALargeTaskIsCheckedAtASampleOfItsOutputs) {
  FakeBuilder builder;
  std::atomic<int> without_samples{0};
  FakeRunner runner([&](auto&, const v1::MeasureRequest& request, auto&) {
    without_samples += request.samples().empty();
    absl::SleepFor(absl::Milliseconds(20));
    return grpc::Status::OK;
  });
  AddBuilder(builder);
  cluster_.AddRunner(runner, "r1", "llvm");
  Start();
  v1::JobSpec spec = TestJob(6);
  *spec.mutable_tasks(0) = TestTask(4096);
  spec.mutable_tasks(0)->set_target("llvm");
  spec.mutable_options()->set_finalists(-1);
  const std::string id = Submit(spec);
  EXPECT_TRUE(Eventually([&] { return Status(id).notices_size() == 1; }));
  EXPECT_THAT(Status(id).notices(0), HasSubstr("would take about 137 s, more than 10"));
  ASSERT_TRUE(Ends(id));
  ExpectExactly(id, 6);
  EXPECT_EQ(without_samples, 0);
  EXPECT_FALSE((*store_->UnscheduledOfJob(id, 0)).has_value()) << "that would take minutes, too";
}

TEST_P(JobsTest, FinalistsAreMeasuredAgainAlsoAfterARestart) {
  FakeBuilder builder;
  std::atomic<bool> hold{true};
  std::atomic<int> again{0};
  FakeRunner runner(HeldInFinalRace(hold, again));
  Serve(builder, runner);
  v1::JobSpec spec = TestJob(32);
  spec.mutable_options()->set_finalists(3);
  const std::string id = Submit(spec);
  ASSERT_TRUE(Eventually([&] { return Status(id).phase() != ""; }));
  EXPECT_EQ(Status(id).phase(), "measuring the 4 best candidates again");
  EXPECT_EQ(Status(id).trials_done(), 32u);
  EXPECT_EQ(State(id), v1::RUNNING);
  hold = false;
  Restart();
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), v1::SUCCEEDED);
  ExpectExactly(id, 32);
  int remeasured = 0;
  const auto records = *store_->RecordsOfJob(id, 0);
  for (const auto& r : records) remeasured += !r.remeasured_costs_s.empty();
  EXPECT_GE(remeasured, 2);
  EXPECT_LE(remeasured, 6);
  EXPECT_GE(again, 2 * remeasured);
  EXPECT_FALSE(store_->BestOfJob(id, 0)->value().remeasured_costs_s.empty());
}

// The device is faster than the builder. The job is stopped in the middle and goes on: the readings
// of its elites count, and the final race is short.
TEST_P(JobsTest, ElitesAreReadMeanwhileAlsoAfterARestart) {
  FakeDevice device(2);
  FakeBuilder builder([](auto&, const auto&, auto&) {
    absl::SleepFor(absl::Milliseconds(20));
    return grpc::Status::OK;
  });
  std::atomic<int> of_final_race{0};
  FakeRunner runner([&](auto& context, const v1::MeasureRequest& request, v1::MeasureReply& reply) {
    of_final_race += request.options().early_stop_ratio() == 0 && request.options().idle_ms() == 0;
    device.Measure(context, request, reply);
    return grpc::Status::OK;
  });
  AddBuilder(builder, "b1", 1);
  cluster_.AddRunner(runner, "r1", "llvm");
  Start();
  v1::JobSpec spec = TestJob(48);
  spec.mutable_tasks(0)->set_target("llvm");
  spec.mutable_options()->set_finalists(4);
  spec.mutable_options()->mutable_measure()->set_idle_ms(20);
  const std::string id = Submit(spec);
  const auto read_again = [&] {
    std::map<int64_t, store::Record> again;
    const auto records = *store_->RecordsOfJob(id, 0);
    for (const store::Record& r : records) {
      if (!r.remeasured_costs_s.empty()) again[r.id] = r;
    }
    return again;
  };
  ASSERT_TRUE(Eventually([&] { return Count(id) >= 16 && read_again().size() >= 2; }));
  Restart();
  const auto before = read_again();
  EXPECT_GE(before.size(), 2u);
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), v1::SUCCEEDED) << Status(id).message();
  ExpectExactly(id, 48);
  const auto after = read_again();
  for (const auto& [record, r] : before) {
    ASSERT_TRUE(after.contains(record));
    EXPECT_GE(after.at(record).remeasurements, r.remeasurements);
    EXPECT_EQ(after.at(record).remeasured_device, "r1");
  }
  const store::Record best = store_->BestOfJob(id, 0)->value();
  EXPECT_GE(best.remeasured_costs_s.size(), 10u) << "five turns";
  EXPECT_NEAR(store::Cost(best), FakeRunner::CostOf(best.steps), 1e-6);
  EXPECT_LT(of_final_race, 2 * 5 * 4) << "turns";
  EXPECT_GT(Status(id).elites_share(), 0);
  EXPECT_GT(Status(id).busy_share(), Status(id).elites_share());
}

TEST_P(JobsTest, ALatencyThatIsReachedEndsTheJob) {
  FakeBuilder builder;
  FakeRunner runner;
  Serve(builder, runner);
  v1::JobSpec spec = TestJob(2000);
  spec.mutable_options()->set_trials_per_round(8);
  spec.mutable_options()->set_latency_target_s(1.05e-3);  // costs are 1 to 2 ms
  const std::string id = Submit(spec);
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), v1::SUCCEEDED);
  EXPECT_LT(Status(id).trials_done(), 1000u);
  EXPECT_LE(Status(id).tasks(0).best_cost_s(), 1.05e-3);
  EXPECT_THAT(Status(id).message(), HasSubstr("the latency asked for, 1.05 ms, is reached"));
  EXPECT_EQ(Status(id).ending(), v1::TARGET_REACHED);
}

TEST_P(JobsTest, AJobThatReachedItsTargetDoesNotSearchAgainAfterARestart) {
  FakeBuilder builder;
  std::atomic<bool> hold{true};
  std::atomic<int> again{0};
  FakeRunner runner(HeldInFinalRace(hold, again));
  Serve(builder, runner);
  v1::JobSpec spec = TestJob(2000);
  spec.mutable_options()->set_latency_target_s(1.05e-3);
  spec.mutable_options()->set_finalists(2);
  const std::string id = Submit(spec);
  ASSERT_TRUE(Eventually([&] { return Status(id).phase() != ""; }));
  EXPECT_EQ(Status(id).ending(), v1::TARGET_REACHED);
  const size_t count = Count(id);
  hold = false;
  Restart();
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(Count(id), count);
  EXPECT_EQ(Status(id).ending(), v1::TARGET_REACHED);
}

TEST_P(JobsTest, EndsWhenItsTimeIsUsedUp) {
  FakeBuilder builder;
  FakeRunner runner(Slow(5));
  Serve(builder, runner);
  v1::JobSpec spec = TestJob(100'000);
  spec.mutable_options()->set_time_budget_s(0.4);
  spec.mutable_options()->set_finalists(2);
  const std::string id = Submit(spec);
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), v1::SUCCEEDED) << Status(id).message();
  EXPECT_EQ(Status(id).ending(), v1::TIME_USED_UP);
  EXPECT_THAT(Status(id).message(), HasSubstr("of 100,000 trials: its 0.006667 minutes are used"));
  EXPECT_EQ(Status(id).trials_done(), Count(id));
  EXPECT_GT(store_->GetJob(id)->progress.active_s, 0.3);
}

TEST_P(JobsTest, ARestartGivesAJobNoMoreTime) {
  FakeBuilder builder;
  FakeRunner runner(Slow(5));
  Serve(builder, runner);
  v1::JobSpec spec = TestJob(100'000);
  spec.mutable_options()->set_time_budget_s(3600);
  const std::string id = Submit(spec);
  ASSERT_TRUE(Eventually([&] { return Count(id) >= 10; }));
  jobs_->Stop();
  const size_t count = Count(id);
  ASSERT_OK(store_->SetProgress(id, {store::JobEnding::kNone, 3600}));
  Restart();
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(Count(id), count);
  EXPECT_EQ(Status(id).ending(), v1::TIME_USED_UP);
}

TEST_P(JobsTest, EarlyStopping) {
  FakeBuilder builder;
  // No later trial is better than the first.
  FakeRunner runner([](auto&, const auto&, v1::MeasureReply& reply) {
    reply.mutable_result()->add_costs_s(1e-3);
    return grpc::Status::OK;
  });
  Serve(builder, runner);
  v1::JobSpec spec = TestJob(10'000);
  spec.mutable_options()->set_early_stopping(20);
  const std::string id = Submit(spec);
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), v1::SUCCEEDED);
  EXPECT_GE(Count(id), 20u);
  EXPECT_LE(Count(id), 40u);
  EXPECT_THAT(Status(id).message(), HasSubstr("of 10,000 trials"));
}

TEST_P(JobsTest, ASpaceThatIsUsedUp) {
  FakeBuilder builder;
  FakeRunner runner;
  Serve(builder, runner);
  v1::JobSpec spec = TestJob(100'000);
  spec.mutable_tasks(0)->set_dag("input A: float32[2]\nB[i: 2] = A[i] + 1.0\n");
  const std::string id = Submit(spec);
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), v1::SUCCEEDED) << Status(id).message();
  EXPECT_GT(Count(id), 0u);
  EXPECT_THAT(Status(id).message(), HasSubstr("no candidates are left"));
}

}  // namespace
}  // namespace kiln::scheduler
