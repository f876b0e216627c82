#include "scheduler/jobs.h"

#include <cmath>
#include <set>

#include "base/digest.h"
#include "base/status_testing.h"
#include "scheduler/fake_workers.h"
#include "scheduler/test_job.h"
#include "store/memory_store.h"
#include "store/sqlite_store.h"
#include "store/test_folder.h"

namespace kiln::scheduler {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Every test with both stores.
class JobsTest : public testing::TestWithParam<bool> {
 protected:
  JobsTest() { OpenStore(); }

  void OpenStore() {
    store_.reset();
    if (GetParam()) {
      auto store = store::OpenSqliteStore(folder_.File("kiln.db"));
      KILN_CHECK(store.ok(), "{}", store.status().ToString());
      store_ = *std::move(store);
    } else {
      store_ = store::NewMemoryStore();
    }
  }

  void AddBuilder(FakeBuilder& builder, const std::string& id = "b1", uint32_t slots = 2) {
    cluster_.AddBuilder(builder, id, slots);
  }
  void AddRunner(FakeRunner& runner, const std::string& id = "r1") {
    cluster_.AddRunner(runner, id);
  }

  void Start(int max_running = 4) {
    events_ = std::make_unique<EventHub>();
    Jobs::Options options;
    options.max_running = max_running;
    options.dispatch = QuickDispatch();
    jobs_ = std::make_unique<Jobs>(*store_, cluster_.factory(), *events_, options);
    ASSERT_OK(jobs_->Start());
  }
  // As a killed process: nothing is told to anyone. The file is opened anew, the memory store has
  // to stay.
  void Restart() {
    jobs_.reset();
    if (GetParam()) OpenStore();
    Start();
  }

  std::string Submit(const v1::JobSpec& spec) {
    auto id = jobs_->Submit(spec);
    KILN_CHECK(id.ok(), "{}", id.status().ToString());
    return *id;
  }
  v1::JobStatus Status(const std::string& id) { return *jobs_->StatusOf(*store_->GetJob(id)); }
  v1::JobState State(const std::string& id) { return Status(id).state(); }
  bool Ends(const std::string& id) {
    return Eventually([&] { return store::IsFinal(store_->GetJob(id)->state); });
  }
  size_t Count(const std::string& id) { return store_->RecordsOfJob(id, 0)->size(); }

  // As many as asked for, numbered without gaps, no candidate twice.
  void ExpectExactly(const std::string& id, size_t trials) {
    const auto records = *store_->RecordsOfJob(id, 0);
    ASSERT_EQ(records.size(), trials);
    std::set<std::string> candidates;
    for (size_t i = 0; i < records.size(); ++i) {
      EXPECT_EQ(records[i].trial, i);
      candidates.insert(fmt::format("{} {}", records[i].task_index, records[i].steps));
    }
    EXPECT_EQ(candidates.size(), trials);
  }

  store::TestFolder folder_;
  std::unique_ptr<store::Store> store_;
  FakeCluster cluster_;
  std::unique_ptr<EventHub> events_;
  std::unique_ptr<Jobs> jobs_;
};

TEST_P(JobsTest, AllRunnersOfAJobServeTheDeviceItNames) {
  FakeBuilder builder;
  FakeRunner runner;
  AddBuilder(builder);
  AddRunner(runner);
  Start();
  v1::JobSpec spec = TestJob(3);
  spec.set_device("GPU-bb");
  EXPECT_TRUE(Ends(Submit(spec)));
  int runners = 0;
  for (const LeaseWish& wish : cluster_.wishes()) {
    if (wish.kind == v1::BUILDER) {
      EXPECT_EQ(wish.key, "null");
    }
    if (wish.kind != v1::RUNNER) continue;
    EXPECT_EQ(wish.key, "GPU-bb");
    ++runners;
  }
  EXPECT_GE(runners, 2) << "the first one and those that measure";
}

INSTANTIATE_TEST_SUITE_P(Stores, JobsTest, testing::Values(false, true), [](const auto& info) {
  return info.param ? std::string("Sqlite") : std::string("Memory");
});

FakeRunner::Hook Slow(int ms) {
  return [ms](auto&, const auto&, auto&) {
    absl::SleepFor(absl::Milliseconds(ms));
    return grpc::Status::OK;
  };
}

TEST_P(JobsTest, AFullJob) {
  FakeBuilder builder;
  FakeRunner runner;
  AddBuilder(builder);
  AddRunner(runner);
  Start();
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
  EXPECT_EQ(status.tasks(0).reference_cost_s(), FakeRunner::CostOf("[]")) << "not the cold 5 ms";
  ExpectExactly(id, 50);
  double best = 1;
  const auto records = *store_->RecordsOfJob(id, 0);
  for (const auto& r : records) {
    best = std::min(best, store::MeanCost(r));
    EXPECT_EQ(r.hardware[0], 4);
    EXPECT_EQ(r.target, "null");
  }
  EXPECT_EQ(status.tasks(0).best_cost_s(), best);
  EXPECT_EQ(runner.measured, 50);
  // All leases go back.
  EXPECT_TRUE(Eventually([&] { return cluster_.runners.held() + cluster_.builders.held() == 0; }));
}

TEST_P(JobsTest, TasksTakeTurns) {
  FakeBuilder builder;
  FakeRunner runner;
  AddBuilder(builder);
  AddRunner(runner);
  Start();
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

TEST_P(JobsTest, TrialsGoWhereTheyAreWorthMost) {
  FakeBuilder builder;
  FakeRunner runner([](auto&, const v1::MeasureRequest& request, v1::MeasureReply& reply) {
    reply.mutable_result()->add_costs_s(FakeRunner::CostOf(request.artifact().binary()));
    reply.mutable_result()->set_run_s(1e-3);
    return grpc::Status::OK;
  });
  AddBuilder(builder);
  AddRunner(runner);
  Start();
  v1::JobSpec spec = TestJob(64);
  spec.mutable_tasks(0)->set_weight(100);
  *spec.add_tasks() = TestTask(32);
  spec.mutable_options()->set_trials_per_round(4);
  const std::string id = Submit(spec);
  ASSERT_TRUE(Ends(id));
  const v1::JobStatus status = Status(id);
  EXPECT_EQ(status.tasks(0).trials() + status.tasks(1).trials(), 64u);
  EXPECT_GT(status.tasks(0).trials(), 50u);
  EXPECT_GE(status.tasks(1).trials(), 4u);
  EXPECT_EQ(status.devices(), 1u);
  EXPECT_GT(status.busy_share(), 0);
  // The latency log: a line for each round.
  ASSERT_OK_AND_ASSIGN(const auto rounds, store_->RoundsOfJob(id, 0));
  ASSERT_EQ(rounds.size(), 16u);
  EXPECT_EQ(rounds.back().trials, 64u);
  EXPECT_TRUE(std::isnan(rounds[0].total_latency_s));
  for (size_t i = 1; i < rounds.size(); ++i) {
    EXPECT_NEAR(rounds[i].total_latency_s, 100 * rounds[i].best_s[0] + rounds[i].best_s[1], 1e-12);
    const double before_s = i > 1 ? rounds[i - 1].total_latency_s : 1;
    EXPECT_LE(rounds[i].total_latency_s, before_s);
    EXPECT_FALSE(rounds[i].report.empty());
  }
  EXPECT_EQ(rounds.back().best_s[0], status.tasks(0).best_cost_s());
}

// One form is four times slower. The job is stopped in the middle and goes on in the same way.
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
  AddBuilder(builder);
  AddRunner(runner);
  Start();
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
  EXPECT_EQ(status.tasks(1).spec().form(), "turned");
  EXPECT_EQ(status.tasks(1).spec().preparation(), "p1 = nothing");
  EXPECT_FALSE(status.tasks(0).spec().has_alternative_of());
  // The log has the objective: the faster one counts, twice.
  ASSERT_OK_AND_ASSIGN(const auto rounds, store_->RoundsOfJob(id, 0));
  const std::vector<double>& best_s = rounds.back().best_s;
  ASSERT_EQ(best_s.size(), 3u);
  EXPECT_LT(best_s[1], best_s[0]);
  EXPECT_NEAR(rounds.back().total_latency_s, std::cbrt(best_s[1] * best_s[1] * best_s[2]), 1e-9);
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
    spec.mutable_options()->set_no_warm_start(true);  // each run would know what the last did
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

// Whatever is found is slower.
TEST_P(JobsTest, NeverEndsSlowerThanTheUnscheduledLoops) {
  FakeBuilder builder;
  FakeRunner runner([](auto&, const v1::MeasureRequest& request, v1::MeasureReply& reply) {
    const bool unscheduled = request.artifact().binary() == "[]";
    reply.mutable_result()->add_costs_s(
        unscheduled ? 0.9e-3 : FakeRunner::CostOf(request.artifact().binary()));
    reply.set_reference_cost_s(5e-3);
    return grpc::Status::OK;
  });
  AddBuilder(builder);
  AddRunner(runner);
  Start();
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

// What the winner is compared with is read beside it, though others were faster.
TEST_P(JobsTest, TheUnscheduledLoopsAreInTheFinals) {
  FakeBuilder builder;
  std::atomic<double> unscheduled_s{1.1e-3};
  FakeRunner runner([&](auto&, const v1::MeasureRequest& request, v1::MeasureReply& reply) {
    const std::string& steps = request.artifact().binary();
    const double cost_s = 0.95e-3 + 0.02 * FakeRunner::CostOf(steps);
    reply.mutable_result()->add_costs_s(steps == "[]" ? unscheduled_s.load() : cost_s);
    return grpc::Status::OK;
  });
  AddBuilder(builder);
  AddRunner(runner);
  Start();
  v1::JobSpec spec = TestJob(12);
  spec.mutable_options()->set_finalists(2);
  const auto finals_of = [&](const std::string& id) {
    std::pair<int, bool> finals{0, false};  // how many, and the unscheduled loops?
    const std::vector<store::Record> records = *store_->RecordsOfJob(id, 0);
    for (const store::Record& r : records) {
      finals.first += !r.final_costs_s.empty();
      finals.second |= r.steps == store::kNoSteps && !r.final_costs_s.empty();
    }
    return finals;
  };
  std::string id = Submit(spec);
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(finals_of(id), std::pair(3, true));
  // Not where they are much slower.
  unscheduled_s = 2e-3;
  *spec.mutable_tasks(0) = TestTask(32);
  id = Submit(spec);
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(finals_of(id), std::pair(2, false));
}

// 137 GFLOP: known to take long before anything runs.
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
  FakeRunner runner([&](auto& context, const v1::MeasureRequest& request, auto&) {
    const bool final = request.options().repeat() > 1;
    while (final && hold && !context.IsCancelled()) absl::SleepFor(absl::Milliseconds(5));
    again += final;
    return grpc::Status::OK;
  });
  AddBuilder(builder);
  AddRunner(runner);
  Start();
  v1::JobSpec spec = TestJob(32);
  spec.mutable_options()->set_finalists(3);
  const std::string id = Submit(spec);
  ASSERT_TRUE(Eventually([&] { return Status(id).phase() != ""; }));
  EXPECT_EQ(Status(id).phase(), "measuring the 3 best candidates again");
  EXPECT_EQ(Status(id).trials_done(), 32u);
  EXPECT_EQ(State(id), v1::RUNNING);
  hold = false;
  Restart();
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), v1::SUCCEEDED);
  ExpectExactly(id, 32);
  int finals = 0;
  const auto records = *store_->RecordsOfJob(id, 0);
  for (const auto& r : records) finals += !r.final_costs_s.empty();
  EXPECT_GE(finals, 2);
  EXPECT_LE(finals, 6);
  EXPECT_GE(again, 2 * finals);
  EXPECT_FALSE(store_->BestOfJob(id, 0)->value().final_costs_s.empty());
}

// The device is faster than the builder. The job is stopped in the middle and goes on: what was
// read of its leaders counts, and the finals are short.
TEST_P(JobsTest, LeadersAreReadMeanwhileAlsoAfterARestart) {
  FakeDevice device(2);
  FakeBuilder builder([](auto&, const auto&, auto&) {
    absl::SleepFor(absl::Milliseconds(20));
    return grpc::Status::OK;
  });
  std::atomic<int> of_finals{0};
  FakeRunner runner([&](auto& context, const v1::MeasureRequest& request, v1::MeasureReply& reply) {
    of_finals += request.options().hopeless_ratio() == 0 && request.options().idle_ms() == 0;
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
      if (!r.final_costs_s.empty()) again[r.id] = r;
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
    EXPECT_GE(after.at(record).final_readings, r.final_readings);
    EXPECT_EQ(after.at(record).final_device, "r1");
  }
  const store::Record best = store_->BestOfJob(id, 0)->value();
  EXPECT_GE(best.final_costs_s.size(), 10u) << "five turns";
  EXPECT_NEAR(store::Cost(best), FakeRunner::CostOf(best.steps), 1e-6);
  EXPECT_LT(of_finals, 2 * 5 * 4) << "turns";
  EXPECT_GT(Status(id).leaders_share(), 0);
  EXPECT_GT(Status(id).busy_share(), Status(id).leaders_share());
}

TEST_P(JobsTest, ALatencyThatIsReachedEndsTheJob) {
  FakeBuilder builder;
  FakeRunner runner;
  AddBuilder(builder);
  AddRunner(runner);
  Start();
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
  FakeRunner runner([&](auto& context, const v1::MeasureRequest& request, auto&) {
    const bool final = request.options().repeat() > 1;
    while (final && hold && !context.IsCancelled()) absl::SleepFor(absl::Milliseconds(5));
    return grpc::Status::OK;
  });
  AddBuilder(builder);
  AddRunner(runner);
  Start();
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
  AddBuilder(builder);
  AddRunner(runner);
  Start();
  v1::JobSpec spec = TestJob(100'000);
  spec.mutable_options()->set_time_budget_s(0.4);
  spec.mutable_options()->set_finalists(2);
  const std::string id = Submit(spec);
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), v1::SUCCEEDED) << Status(id).message();
  EXPECT_EQ(Status(id).ending(), v1::TIME_USED_UP);
  EXPECT_THAT(Status(id).message(), HasSubstr("of 100000 trials: its 0.006667 minutes are used"));
  EXPECT_EQ(Status(id).trials_done(), Count(id));
  EXPECT_GT(store_->GetJob(id)->progress.active_s, 0.3);
}

TEST_P(JobsTest, ARestartGivesAJobNoMoreTime) {
  FakeBuilder builder;
  FakeRunner runner(Slow(5));
  AddBuilder(builder);
  AddRunner(runner);
  Start();
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
  AddBuilder(builder);
  AddRunner(runner);
  Start();
  const std::string id = Submit(TestJob(100'000));
  ASSERT_TRUE(Eventually([&] { return Count(id) >= 10; }));
  ASSERT_OK(jobs_->Cancel(id));
  EXPECT_EQ(State(id), v1::CANCELLED);
  EXPECT_TRUE(Eventually([&] { return cluster_.runners.held() + cluster_.builders.held() == 0; }));
  ASSERT_OK(jobs_->Cancel(id));  // again
  jobs_->Stop();                 // what was measured is committed by then
  const size_t count = Count(id);
  EXPECT_LT(count, 1'000u);
  Restart();
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(State(id), v1::CANCELLED);
  EXPECT_EQ(Count(id), count);
}

TEST_P(JobsTest, CancelWhileItWaits) {
  Start(1);
  const std::string waiting = Submit(TestJob(5));  // for a worker
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
  AddBuilder(builder);
  AddRunner(runner);
  Start();
  const std::string id = Submit(TestJob(3));
  ASSERT_TRUE(Ends(id));
  EXPECT_THAT(jobs_->Cancel(id),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("already succeeded")));
}

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

// A job of the learned search whose rounds are quick.
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
  AddBuilder(builder);
  AddRunner(runner);
  Start();
  const std::string first = Submit(LearnedJob(48));
  ASSERT_TRUE(Ends(first));
  const auto best = *store_->BestOfJob(first, 0);
  ASSERT_TRUE(best.has_value());
  std::set<std::string> measured;
  const auto records = *store_->RecordsOfJob(first, 0);
  for (const auto& r : records) measured.insert(r.steps);
  EXPECT_EQ(Status(first).tasks(0).known_states(), 0u);

  // The same workload: what is known is said before the first trial.
  hold = true;
  const std::string again = Submit(LearnedJob(32));
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
    if (r.steps == store::kNoSteps) continue;  // what a job compares with is its own
    EXPECT_FALSE(measured.contains(r.steps)) << "trial " << r.trial << " was measured before";
    of_earlier += r.origin.find("from record ") != std::string::npos;
  }
  EXPECT_GT(of_earlier, 8) << "few are changes of what was known";
  EXPECT_THAT(store_->RoundsOfJob(again, 0)->front().report, HasSubstr("ranked by xgb"));

  // Another one: with so few workloads its own results have to come first, with more the model
  // ranks from the start.
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
  AddBuilder(builder);
  AddRunner(runner);
  Start();
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
  // It has learned all of it before its first round.
  const auto report = store_->RoundsOfJob(id, static_cast<uint32_t>(rounds))->front().report;
  EXPECT_THAT(report, AllOf(HasSubstr("round 1:"), HasSubstr("ranked by xgb")));
}

TEST_P(JobsTest, ASpaceThatIsUsedUpByAnEarlierJob) {
  FakeBuilder builder;
  FakeRunner runner;
  AddBuilder(builder);
  AddRunner(runner);
  Start();
  v1::JobSpec spec = LearnedJob(10'000);
  spec.mutable_tasks(0)->set_dag("input A: float32[2]\nB[i: 2] = A[i] + 1.0\n");
  const std::string first = Submit(spec);
  ASSERT_TRUE(Ends(first));
  const std::string again = Submit(spec);
  ASSERT_TRUE(Ends(again));
  EXPECT_EQ(State(again), v1::SUCCEEDED) << Status(again).message();
  EXPECT_EQ(Count(again), 1u) << "the unscheduled loops, which it compares with";
  EXPECT_THAT(Status(again).message(), HasSubstr("no candidates are left"));
}

TEST_P(JobsTest, GapsInTheTrialNumbersAreFilled) {
  Start();
  const std::string id = Submit(TestJob(20));
  jobs_.reset();
  // What a process leaves that died with trials 0, 2 and 5 done.
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
  AddBuilder(builder);
  AddRunner(runner);
  Start();
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

TEST_P(JobsTest, EarlyStopping) {
  FakeBuilder builder;
  // Nothing is ever better than the first.
  FakeRunner runner([](auto&, const auto&, v1::MeasureReply& reply) {
    reply.mutable_result()->add_costs_s(1e-3);
    return grpc::Status::OK;
  });
  AddBuilder(builder);
  AddRunner(runner);
  Start();
  v1::JobSpec spec = TestJob(10'000);
  spec.mutable_options()->set_early_stopping(20);
  const std::string id = Submit(spec);
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), v1::SUCCEEDED);
  EXPECT_GE(Count(id), 20u);
  EXPECT_LE(Count(id), 40u);
  EXPECT_THAT(Status(id).message(), HasSubstr("of 10000 trials"));
}

TEST_P(JobsTest, ASpaceThatIsUsedUp) {
  FakeBuilder builder;
  FakeRunner runner;
  AddBuilder(builder);
  AddRunner(runner);
  Start();
  v1::JobSpec spec = TestJob(100'000);
  spec.mutable_tasks(0)->set_dag("input A: float32[2]\nB[i: 2] = A[i] + 1.0\n");
  const std::string id = Submit(spec);
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), v1::SUCCEEDED) << Status(id).message();
  EXPECT_GT(Count(id), 0u);
  EXPECT_THAT(Status(id).message(), HasSubstr("no candidates are left"));
}

TEST_P(JobsTest, AJobWithoutOneCorrectProgramFails) {
  FakeBuilder builder;
  FakeRunner runner([](auto&, const auto&, v1::MeasureReply& reply) {
    reply.mutable_result()->set_error(v1::WRONG_ANSWER_ERROR);
    return grpc::Status::OK;
  });
  AddBuilder(builder);
  AddRunner(runner);
  Start();
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
  const std::string a = Submit(TestJob(40));
  const std::string b = Submit(TestJob(40));
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
