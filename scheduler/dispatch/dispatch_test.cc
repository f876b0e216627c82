#include "scheduler/dispatch/dispatch.h"

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "base/status_testing.h"
#include "scheduler/dispatch/dispatch_testing.h"
#include "scheduler/dispatch/workers_testing.h"
#include "scheduler/values/job_testing.h"

namespace kiln::scheduler {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST_F(DispatchTest, EveryTrialIsRecordedBeforeItsOutcome) {
  FakeBuilder builder;
  FakeRunner runner;
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  Start();
  for (uint32_t i = 0; i < 20; ++i) {
    dispatcher_->Submit(MakeTrial(i));
    ASSERT_OK_AND_ASSIGN(const search::Outcome outcome, NextOutcome());
    EXPECT_EQ(outcome.trial.number, i);
    EXPECT_TRUE(outcome.valid);
    ASSERT_EQ(Records().size(), i + 1);
    const store::Record record = Records().back();
    EXPECT_EQ(outcome.cost_s, store::MeanCost(record));
    EXPECT_EQ(outcome.cost_s, FakeRunner::CostOf(record.steps));
    EXPECT_EQ(record.steps, fmt::format(R"([["SP", 2, 0, 512, [{}], 1]])", i + 1));
    EXPECT_EQ(record.builder, "b1");
    EXPECT_EQ(record.runner, "r1");
    EXPECT_EQ(record.device, "fake device");
    EXPECT_EQ(record.dag, "a dag");
    EXPECT_EQ(record.build_s, 0.01);
    EXPECT_GT(record.timestamp_s, 0);
  }
  EXPECT_EQ(builder.calls, 21);          // twenty candidates and the reference
  EXPECT_EQ(runner.references_sent, 1);  // the runner asked for it once
  EXPECT_EQ(store_->TasksOfJob(kJobId)->at(0).reference_cost_s, 5e-3);
}

TEST_F(DispatchTest, SeveralBuildersAndRunnersShareTheTrials) {
  std::atomic<int> at_once{0}, most{0};
  FakeBuilder b1, b2;
  const auto slow = [&](grpc::ServerContext&, const v1::MeasureRequest&, v1::MeasureReply&) {
    const int now = ++at_once;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    absl::SleepFor(absl::Milliseconds(10));
    --at_once;
    return grpc::Status::OK;
  };
  FakeRunner r1(slow), r2(slow), r3(slow);
  AddRunner(r1, "r1");
  Start();
  AddRunner(r2, "r2");
  AddRunner(r3, "r3");
  AddBuilder(b1, "b1");
  AddBuilder(b2, "b2");
  EXPECT_EQ(RunTrials(0, 60).size(), 60u);
  EXPECT_EQ(most, 3);
  EXPECT_GT(r2.measured, 0);
  EXPECT_GT(r3.measured, 0);
  EXPECT_EQ(r1.measured + r2.measured + r3.measured, 60);
  EXPECT_EQ(Records().size(), 60u);
}

TEST_F(DispatchTest, AbandonedTrialsAreCancelledAndNotRecorded) {
  FakeBuilder builder;
  std::atomic<int> begun{0}, cancelled{0};
  std::atomic<bool> hang{true};
  FakeRunner runner([&](grpc::ServerContext& context, const auto&, auto&) {
    ++begun;
    while (hang && !context.IsCancelled()) absl::SleepFor(absl::Milliseconds(2));
    cancelled += context.IsCancelled();
    return grpc::Status::OK;
  });
  job_.tasks.resize(2, job_.tasks[0]);
  const store::TaskRow second{.index = 1};
  ASSERT_OK(store_->AddTasks(kJobId, {&second, 1}));
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  Start();
  for (uint32_t i = 0; i < 6; ++i) {
    search::Trial trial = MakeTrial(i);
    trial.task = i == 4 ? 1 : 0;
    dispatcher_->Submit(std::move(trial));
  }
  ASSERT_TRUE(Eventually([&] { return begun > 0; }));
  EXPECT_EQ(dispatcher_->Abandon(0), (std::vector<uint32_t>{0, 1, 2, 3, 5}));
  EXPECT_TRUE(dispatcher_->Abandon(0).empty());
  EXPECT_TRUE(Eventually([&] { return cancelled > 0; }));
  hang = false;
  // The other task's trial goes on, and the numbers are given to other trials now.
  search::Trial trial = MakeTrial(77);
  trial.number = 0;
  dispatcher_->Submit(std::move(trial));
  std::set<uint32_t> numbers;
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK_AND_ASSIGN(const search::Outcome outcome, NextOutcome());
    numbers.insert(outcome.trial.number);
  }
  EXPECT_EQ(numbers, (std::set<uint32_t>{0, 4}));
  ASSERT_EQ(Records().size(), 2u);
  EXPECT_EQ(Records()[0].steps, R"([["SP", 2, 0, 512, [78], 1]])");
}

TEST_F(DispatchTest, AReferenceThatTakesTooLongGivesWayToASample) {
  job_.tasks[0].dag = TestTask().dag();
  job_.tasks[0].description = "matmul";
  job_.options.set_reference_limit_s(2);
  std::atomic<int> sampled_builds{0};
  FakeBuilder builder([&](auto&, const v1::BuildRequest& request, auto&) {
    sampled_builds += request.dag() != TestTask().dag();
    return grpc::Status::OK;
  });
  std::atomic<int> given_up{0};
  FakeRunner runner([&](auto&, const v1::MeasureRequest& request, auto&) {
    EXPECT_EQ(request.reference_timeout_ms(), 2000u);
    if (!request.samples().empty()) return grpc::Status::OK;
    ++given_up;
    return grpc::Status(grpc::StatusCode::OUT_OF_RANGE, "not finished after 2s");
  });
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  Start();
  EXPECT_TRUE(dispatcher_->notices().empty());
  search::Trial unscheduled;
  dispatcher_->Submit(std::move(unscheduled));  // number 0
  ASSERT_OK(NextOutcome());
  EXPECT_EQ(RunTrials(1, 6).size(), 5u);
  const std::vector<store::Record> records = Records();
  ASSERT_EQ(records.size(), 6u);
  EXPECT_EQ(records[0].error, v1::RUN_TIMEOUT_ERROR);
  EXPECT_THAT(records[0].message, HasSubstr("the unscheduled loops take more than 2 s"));
  for (size_t i = 1; i < 6; ++i) EXPECT_EQ(records[i].error, store::kNoError);
  EXPECT_EQ(sampled_builds, 1);
  EXPECT_EQ(given_up, 1);
  ASSERT_EQ(dispatcher_->notices().size(), 1u);
  EXPECT_THAT(dispatcher_->notices()[0],
              AllOf(HasSubstr("matmul: answers are compared at "), HasSubstr(" of 4096 elements"),
                    HasSubstr("the unscheduled loops take more than 2 s (--reference-limit)")));
}

TEST_F(DispatchTest, NextWaitsNoLongerThanItMay) {
  FakeBuilder builder;
  FakeRunner runner;
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  Start();
  ASSERT_OK_AND_ASSIGN(const auto outcome, dispatcher_->Next(0));
  EXPECT_FALSE(outcome.has_value());
}

TEST_F(DispatchTest, CapacityFollowsTheLeases) {
  FakeBuilder builder;
  FakeRunner runner;
  AddRunner(runner, "r1");
  Start();
  AddBuilder(builder, "b1", 4);
  EXPECT_LE(dispatcher_->capacity(), 5);
  EXPECT_EQ(RunTrials(0, 30).size(), 30u);
  EXPECT_GE(dispatcher_->capacity(), 6);
  // All leases are given back when there is nothing to do.
  EXPECT_TRUE(
      Eventually([&] { return cluster_.builders.held() == 0 && cluster_.runners.held() == 0; }));
  EXPECT_EQ(RunTrials(30, 40).size(), 10u);
}

TEST_F(DispatchTest, AWantedLeaseIsGivenBackBetweenTrials) {
  FakeBuilder builder;
  FakeRunner runner([](auto&, const auto&, auto&) {
    absl::SleepFor(absl::Milliseconds(20));
    return grpc::Status::OK;
  });
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  Start();
  const int before = cluster_.runners.acquired();
  for (uint32_t i = 0; i < 20; ++i) dispatcher_->Submit(MakeTrial(i));
  ASSERT_OK(dispatcher_->Next(kNever_s));
  cluster_.runners.Want("r1");
  for (int i = 1; i < 20; ++i) ASSERT_OK(dispatcher_->Next(kNever_s));
  EXPECT_GT(cluster_.runners.acquired(), before);
  for (const auto& record : Records()) EXPECT_EQ(record.error, store::kNoError);
}

TEST_F(DispatchTest, ARunnerOfAnotherKindIsNotUsed) {
  FakeBuilder builder;
  FakeRunner r1, r2;
  AddRunner(r1, "r1");
  job_.runner_target = "null";
  Start();
  cluster_.AddRunner(r2, "r2", "null -num-cores=1");
  AddBuilder(builder, "b1");
  EXPECT_EQ(RunTrials(0, 20).size(), 20u);
  EXPECT_EQ(r2.calls, 0);
}

TEST_F(DispatchTest, TheBestCostGoesWithEachTrial) {
  std::mutex mutex;
  std::vector<v1::MeasureOptions> seen;
  FakeBuilder builder;
  FakeRunner runner([&](auto&, const v1::MeasureRequest& request, v1::MeasureReply& reply) {
    std::lock_guard lock(mutex);
    seen.push_back(request.options());
    if (seen.size() == 3) {  // the program was far too slow
      reply.mutable_result()->add_costs_s(0.1);
      reply.mutable_result()->set_stopped_early(true);
    }
    return grpc::Status::OK;
  });
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  Start();
  for (uint32_t i = 0; i < 4; ++i) {
    dispatcher_->Submit(MakeTrial(i));
    ASSERT_OK(dispatcher_->Next(kNever_s));
  }
  std::lock_guard lock(mutex);
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[0].best_cost_s(), 0);
  EXPECT_EQ(seen[0].early_stop_ratio(), 10);
  const auto records = Records();
  EXPECT_EQ(seen[1].best_cost_s(), store::MeanCost(records[0]));
  const double best = std::min(store::MeanCost(records[0]), store::MeanCost(records[1]));
  EXPECT_EQ(seen[2].best_cost_s(), best);
  EXPECT_EQ(seen[3].best_cost_s(), best);
  EXPECT_TRUE(records[2].stopped_early);
}

TEST_F(DispatchTest, StopEndsNextAtOnceWhateverRuns) {
  FakeBuilder builder;
  std::atomic<bool> started{false};
  FakeRunner runner([&](grpc::ServerContext& context, const auto&, auto&) {
    started = true;
    while (!context.IsCancelled()) absl::SleepFor(absl::Milliseconds(5));
    return grpc::Status::CANCELLED;
  });
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  job_.options.mutable_measure()->set_timeout_ms(60'000);
  Start();
  dispatcher_->Submit(MakeTrial(0));
  ASSERT_TRUE(Eventually([&] { return started.load(); }));
  const absl::Time start = absl::Now();
  dispatcher_->Stop();
  EXPECT_THAT(dispatcher_->Next(kNever_s), StatusIs(StatusCode::kCancelled, testing::_));
  dispatcher_.reset();
  EXPECT_LT(absl::Now() - start, absl::Seconds(50)) << "the trial has 60 s";
  EXPECT_TRUE(Records().empty());
  EXPECT_EQ(cluster_.runners.held(), 0);
}

TEST_F(DispatchTest, StopsWithoutAnyWorker) {
  FakeRunner runner;
  AddRunner(runner, "r1");
  Start();
  dispatcher_->Submit(MakeTrial(0));
  EXPECT_TRUE(Eventually([&] { return dispatcher_->waiting().for_builder; }));
  dispatcher_->Stop();
  EXPECT_THAT(dispatcher_->Next(kNever_s), StatusIs(StatusCode::kCancelled, testing::_));
}

TEST_F(DispatchTest, WakeEndsNextWithoutAnOutcome) {
  FakeRunner runner;
  AddRunner(runner, "r1");
  Start();
  std::thread waker([&] {
    absl::SleepFor(absl::Milliseconds(20));
    dispatcher_->Wake();
  });
  ASSERT_OK_AND_ASSIGN(const auto none, dispatcher_->Next(kNever_s));
  EXPECT_FALSE(none.has_value());
  waker.join();
  dispatcher_->Wake();  // before Next
  EXPECT_FALSE(dispatcher_->Next(kNever_s)->has_value());
}

// A runner that uses idle time learns from a second call that a trial waits.
TEST_F(DispatchTest, TheNextTrialIsSentAheadWhereIdleTimeIsUsed) {
  for (const uint32_t idle_ms : {50, 0}) {
    std::atomic<int> at_once{0}, most{0};
    std::atomic<uint32_t> seen_idle_ms{0};
    FakeBuilder builder;
    FakeRunner runner([&](auto&, const v1::MeasureRequest& request, v1::MeasureReply&) {
      const int now = ++at_once;
      seen_idle_ms = request.options().idle_ms();
      for (int before = most; before < now && !most.compare_exchange_weak(before, now);) {
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      --at_once;
      return grpc::Status::OK;
    });
    AddBuilder(builder, fmt::format("b{}", idle_ms));
    AddRunner(runner, fmt::format("r{}", idle_ms));
    job_.options.mutable_measure()->set_idle_ms(idle_ms);
    Start();
    const uint32_t first = idle_ms == 0 ? 20 : 0;
    EXPECT_EQ(RunTrials(first, first + 12).size(), 12u);
    EXPECT_EQ(most, idle_ms == 0 ? 1 : 2);
    EXPECT_EQ(seen_idle_ms, idle_ms);
    // All turns of finalists have one length.
    if (idle_ms > 0) {
      Finalists list;
      const store::Record record = Records()[0];
      list.entries.push_back({record.id, record.steps});
      ASSERT_OK(dispatcher_->MeasureAgain({list}));
      EXPECT_EQ(seen_idle_ms, 0);
    }
    dispatcher_ = nullptr;
    cluster_.runners.RemoveWorker(fmt::format("r{}", idle_ms));
    cluster_.builders.RemoveWorker(fmt::format("b{}", idle_ms));
  }
}

// A free runner gets the next trial.
TEST_F(DispatchTest, NothingIsSentAheadThatAFreeRunnerCanTake) {
  std::mutex mutex;
  std::map<std::string, int> at_once;
  FakeBuilder builder;
  const auto hook = [&](const std::string& name) {
    return [&, name](auto&, const v1::MeasureRequest&, v1::MeasureReply&) {
      {
        std::lock_guard lock(mutex);
        EXPECT_LE(++at_once[name], 2);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      std::lock_guard lock(mutex);
      --at_once[name];
      return grpc::Status::OK;
    };
  };
  FakeRunner r1(hook("r1")), r2(hook("r2"));
  AddBuilder(builder, "b1", 4);
  AddRunner(r1, "r1");
  AddRunner(r2, "r2");
  job_.options.mutable_measure()->set_idle_ms(50);
  Start();
  EXPECT_EQ(RunTrials(0, 40).size(), 40u);
  EXPECT_GT(r1.measured, 10);
  EXPECT_GT(r2.measured, 10);
}

// Jobs of a large fleet have had leases on all workers after a while.
TEST_F(DispatchTest, JobsShareTheConnectionsToTheirWorkers) {
  FakeBuilder builder;
  FakeRunner runner;
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  const DispatchOptions options = QuickDispatch();
  for (uint32_t job = 0; job < 4; ++job) {
    Start(options);
    EXPECT_EQ(RunTrials(5 * job, 5 * job + 5).size(), 5u);
    EXPECT_EQ(options.channels->size(), 2u);
    dispatcher_ = nullptr;
  }
}

}  // namespace
}  // namespace kiln::scheduler
