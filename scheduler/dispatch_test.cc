#include "scheduler/dispatch.h"

#include <map>
#include <set>
#include <thread>

#include "base/status_testing.h"
#include "compiler/schedule/step.h"
#include "scheduler/fake_workers.h"
#include "store/memory_store.h"

namespace kiln::scheduler {
namespace {

using testing::HasSubstr;

constexpr char kJobId[] = "job";

search::Trial MakeTrial(uint32_t number) {
  search::Trial trial;
  trial.number = number;
  // Never replayed: the fakes only look at the text.
  auto steps = schedule::ParseSteps(fmt::format(R"([["SP", 2, 0, 512, [{}], 1]])", number + 1));
  KILN_CHECK(steps.ok(), "{}", steps.status().ToString());
  trial.candidate.steps = *std::move(steps);
  trial.candidate.hash = number;
  return trial;
}

class DispatchTest : public testing::Test {
 protected:
  DispatchTest() : store_(store::NewMemoryStore()) {
    store::JobRow row;
    row.id = kJobId;
    store::TaskRow task;
    KILN_CHECK(store_->AddJob(row, {&task, 1}).ok());
    job_.id = kJobId;
    job_.options.set_trials(100);
    job_.options.set_build_timeout_ms(200);
    job_.options.mutable_measure()->set_timeout_ms(200);
    job_.options.mutable_measure()->set_hopeless_ratio(10);
    job_.tasks.resize(1);
    job_.tasks[0].workload_key = "[\"key\"]";
    job_.tasks[0].dag = "a dag";
    job_.tasks[0].target = "null";
  }

  void AddBuilder(FakeBuilder& builder, const std::string& id, uint32_t slots = 2) {
    cluster_.AddBuilder(builder, id, slots);
  }
  void AddRunner(FakeRunner& runner, const std::string& id) { cluster_.AddRunner(runner, id); }

  // After the first runner was added.
  void Start(DispatchOptions options = QuickDispatch()) {
    auto lease = cluster_.runners.Acquire(absl::Seconds(5), {});
    KILN_CHECK(lease.ok(), "{}", lease.status().ToString());
    dispatcher_ = std::make_unique<Dispatcher>(job_, options, cluster_.builders, cluster_.runners,
                                               *std::move(lease), *store_, [this] { ++commits_; });
  }

  // Submits trials [begin, end) and takes all their outcomes.
  std::set<uint32_t> RunTrials(uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; ++i) dispatcher_->Submit(MakeTrial(i));
    std::set<uint32_t> numbers;
    for (uint32_t i = begin; i < end; ++i) {
      const auto outcome = NextOutcome();
      EXPECT_OK(outcome);
      if (!outcome.ok()) break;
      numbers.insert(outcome->trial.number);
    }
    return numbers;
  }

  StatusOr<search::Outcome> NextOutcome() {
    KILN_ASSIGN_OR_RETURN(std::optional<search::Outcome> outcome, dispatcher_->Next());
    KILN_CHECK(outcome.has_value(), "nobody called Wake");
    return *std::move(outcome);
  }

  std::vector<store::Record> Records() { return *store_->RecordsOfJob(kJobId, 0); }

  std::unique_ptr<store::Store> store_;
  FakeCluster cluster_;
  Dispatcher::Job job_;
  std::atomic<int> commits_{0};
  std::unique_ptr<Dispatcher> dispatcher_;  // before the rest goes
};

// Builds and measurements as the fakes see them.
class Overlaps {
 public:
  FakeBuilder::Hook build() {
    return [this](grpc::ServerContext&, const v1::BuildRequest&, v1::BuildReply&) {
      Note(building_, measuring_);
      return grpc::Status::OK;
    };
  }
  FakeRunner::Hook measure() {
    return [this](grpc::ServerContext&, const v1::MeasureRequest&, v1::MeasureReply&) {
      Note(measuring_, building_);
      return grpc::Status::OK;
    };
  }
  int count() const { return count_; }

 private:
  void Note(std::atomic<int>& mine, const std::atomic<int>& others) {
    ++mine;
    absl::SleepFor(absl::Milliseconds(3));
    if (others > 0) ++count_;
    --mine;
  }

  std::atomic<int> building_{0}, measuring_{0}, count_{0};
};

TEST_F(DispatchTest, NothingIsBuiltWhileTheCpuOfTheSameMachineIsMeasured) {
  for (const bool on_cpu : {true, false}) {
    SCOPED_TRACE(on_cpu);
    Overlaps overlaps;
    FakeBuilder builder(overlaps.build());
    FakeRunner runner(overlaps.measure());
    FakeCluster cluster;
    cluster.AddBuilder(builder, "b1", 2);
    cluster.AddRunner(runner, "r1");
    Turns turns({.length = absl::Milliseconds(20), .linger = absl::Milliseconds(2)}, Clock::Real());
    DispatchOptions options = QuickDispatch();
    options.turns = &turns;
    job_.on_cpu = on_cpu;
    ASSERT_OK_AND_ASSIGN(auto lease, cluster.runners.Acquire(absl::Seconds(5), {}));
    const auto store = store::NewMemoryStore();
    store::JobRow row;
    row.id = kJobId;
    store::TaskRow task;
    ASSERT_OK(store->AddJob(row, {&task, 1}));
    Dispatcher dispatcher(job_, options, cluster.builders, cluster.runners, std::move(lease),
                          *store, [] {});
    for (uint32_t i = 0; i < 40; ++i) dispatcher.Submit(MakeTrial(i));
    for (uint32_t i = 0; i < 40; ++i) ASSERT_OK(dispatcher.Next().status());
    if (on_cpu) {
      EXPECT_EQ(overlaps.count(), 0);
    } else {
      EXPECT_GT(overlaps.count(), 0) << "a GPU is measured while others build";
    }
  }
}

TEST_F(DispatchTest, StopsWhileItWaitsForItsTurn) {
  FakeBuilder builder;
  FakeRunner runner;
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  Turns turns;
  const Turns::Hold measurement = turns.Enter(Turns::Kind::kMeasurement);
  DispatchOptions options = QuickDispatch();
  options.turns = &turns;
  Start(options);
  dispatcher_->Submit(MakeTrial(0));
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(builder.calls, 0);
  dispatcher_.reset();
  EXPECT_TRUE(Records().empty());
}

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
  EXPECT_EQ(builder.calls, 21);          // with the reference
  EXPECT_EQ(runner.references_sent, 1);  // asked for once
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

TEST_F(DispatchTest, CapacityFollowsTheLeases) {
  FakeBuilder builder;
  FakeRunner runner;
  AddRunner(runner, "r1");
  Start();
  AddBuilder(builder, "b1", 4);
  EXPECT_LE(dispatcher_->capacity(), 5);
  EXPECT_EQ(RunTrials(0, 30).size(), 30u);
  EXPECT_GE(dispatcher_->capacity(), 6);
  // Nothing to do: everything is given back.
  EXPECT_TRUE(
      Eventually([&] { return cluster_.builders.held() == 0 && cluster_.runners.held() == 0; }));
  EXPECT_EQ(RunTrials(30, 40).size(), 10u);
}

TEST_F(DispatchTest, FailuresOfTheCandidateAreResults) {
  FakeBuilder builder([](auto&, const v1::BuildRequest& request, v1::BuildReply& reply) {
    if (request.steps().find("[3]") != std::string::npos) {
      reply.set_error(v1::COMPILE_HOST_ERROR);
      reply.set_message("compiler process killed by signal 6 (Aborted)");
    }
    return grpc::Status::OK;
  });
  FakeRunner runner([](auto&, const v1::MeasureRequest& request, v1::MeasureReply& reply) {
    const std::string& steps = request.artifact().binary();
    if (steps.find("[4]") != std::string::npos) {
      reply.mutable_result()->set_error(v1::WRONG_ANSWER_ERROR);
      reply.mutable_result()->set_message("element 0");
      reply.mutable_result()->add_costs_s(1e10);
    } else if (steps.find("[5]") != std::string::npos) {
      reply.mutable_result();  // a success without costs
    } else if (steps.find("[6]") != std::string::npos) {
      reply.mutable_result()->add_costs_s(0);
    }
    return grpc::Status::OK;
  });
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  Start();
  EXPECT_EQ(RunTrials(0, 8).size(), 8u);
  const auto records = Records();
  ASSERT_EQ(records.size(), 8u);
  EXPECT_EQ(records[2].error, v1::COMPILE_HOST_ERROR);
  EXPECT_THAT(records[2].message, HasSubstr("signal 6"));
  EXPECT_EQ(records[3].error, v1::WRONG_ANSWER_ERROR);
  EXPECT_TRUE(records[3].costs_s.empty());
  EXPECT_EQ(records[4].error, v1::UNKNOWN_ERROR);
  EXPECT_THAT(records[4].message, HasSubstr("success without costs"));
  EXPECT_EQ(records[5].error, v1::UNKNOWN_ERROR);
  EXPECT_EQ(records[6].error, store::kNoError);
  EXPECT_EQ(builder.calls, 9);  // no candidate was built twice
}

TEST_F(DispatchTest, ATrialGoesToAnotherBuilderWhenOneFails) {
  FakeBuilder bad([](auto&, const auto&, auto&) {
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "out of children");
  });
  FakeBuilder good;
  FakeRunner runner;
  AddBuilder(bad, "b1", 1);
  AddBuilder(good, "b2", 1);
  AddRunner(runner, "r1");
  Start();
  EXPECT_EQ(RunTrials(0, 20).size(), 20u);
  for (const store::Record& record : Records()) {
    EXPECT_EQ(record.error, store::kNoError) << record.message;
    EXPECT_EQ(record.builder, "b2");
  }
  EXPECT_GT(bad.calls, 0);
  EXPECT_LT(bad.calls, 20);
}

TEST_F(DispatchTest, GivesUpOnATrialThatFailsOnEveryWorker) {
  FakeBuilder builder;
  FakeRunner runner([](auto&, const v1::MeasureRequest& request, auto&) {
    const bool cursed = request.artifact().binary().find("[2]") != std::string::npos;
    return cursed ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "connection reset")
                  : grpc::Status::OK;
  });
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  Start();
  EXPECT_EQ(RunTrials(0, 5).size(), 5u);
  const auto records = Records();
  EXPECT_EQ(records[1].error, v1::UNKNOWN_ERROR);
  EXPECT_THAT(records[1].message, HasSubstr("given up after 3 attempts"));
  EXPECT_THAT(records[1].message, HasSubstr("connection reset"));
  for (const int other : {0, 2, 3, 4}) EXPECT_EQ(records[other].error, store::kNoError);
}

TEST_F(DispatchTest, AHangingWorkerCostsADeadline) {
  std::atomic<int> hung{0};
  FakeBuilder builder;
  FakeRunner runner([&](grpc::ServerContext& context, const auto&, auto&) {
    if (hung++ > 0) return grpc::Status::OK;
    while (!context.IsCancelled()) absl::SleepFor(absl::Milliseconds(5));
    return grpc::Status::CANCELLED;
  });
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  Start();
  EXPECT_EQ(RunTrials(0, 3).size(), 3u);
  for (const auto& record : Records()) EXPECT_EQ(record.error, store::kNoError) << record.message;
}

TEST_F(DispatchTest, AnUnreachableWorkerCostsNoTrial) {
  FakeBuilder builder;
  FakeRunner runner;
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  Start();
  EXPECT_EQ(RunTrials(0, 4).size(), 4u);
  runner.workers[0]->StopListening();
  dispatcher_->Submit(MakeTrial(4));
  EXPECT_TRUE(Eventually([&] { return dispatcher_->waiting().for_runner; }));
  EXPECT_TRUE(Eventually([&] {
    return dispatcher_->waiting().problem.find("no connection to") != std::string::npos;
  }));
  absl::SleepFor(absl::Milliseconds(1500));  // more tries than a trial has attempts
  runner.workers[0]->ListenAgain();
  ASSERT_OK_AND_ASSIGN(const search::Outcome outcome, NextOutcome());
  EXPECT_TRUE(outcome.valid);
  EXPECT_FALSE(dispatcher_->waiting().for_runner);
}

TEST_F(DispatchTest, ALostLeaseSendsTheTrialElsewhere) {
  FakeBuilder builder;
  std::atomic<bool> started{false};
  FakeRunner r1([&](grpc::ServerContext& context, const auto&, auto&) {
    started = true;
    while (!context.IsCancelled()) absl::SleepFor(absl::Milliseconds(5));
    return grpc::Status::CANCELLED;
  });
  FakeRunner r2;
  AddBuilder(builder, "b1");
  AddRunner(r1, "r1");
  job_.options.mutable_measure()->set_timeout_ms(60'000);
  Start();
  dispatcher_->Submit(MakeTrial(0));
  ASSERT_TRUE(Eventually([&] { return started.load(); }));
  cluster_.runners.RemoveWorker("r1");  // for ever
  absl::SleepFor(absl::Milliseconds(50));
  AddRunner(r2, "r2");  // and another comes
  ASSERT_OK_AND_ASSIGN(const search::Outcome outcome, NextOutcome());
  EXPECT_TRUE(outcome.valid);
  EXPECT_EQ(Records().at(0).runner, "r2");
}

TEST_F(DispatchTest, ABuilderVanishesAndComesBack) {
  FakeBuilder builder;
  FakeRunner runner;
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  Start();
  EXPECT_EQ(RunTrials(0, 4).size(), 4u);
  cluster_.builders.RemoveWorker("b1");
  for (uint32_t i = 4; i < 8; ++i) dispatcher_->Submit(MakeTrial(i));
  EXPECT_TRUE(Eventually([&] { return dispatcher_->waiting().for_builder; }));
  AddBuilder(builder, "b2");
  for (int i = 4; i < 8; ++i) EXPECT_OK(dispatcher_->Next());
  EXPECT_EQ(Records().size(), 8u);
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
  ASSERT_OK(dispatcher_->Next());
  cluster_.runners.Want("r1");
  for (int i = 1; i < 20; ++i) ASSERT_OK(dispatcher_->Next());
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
    if (seen.size() == 3) {  // it was hopeless
      reply.mutable_result()->add_costs_s(1);
      reply.mutable_result()->set_stopped_early(true);
    }
    return grpc::Status::OK;
  });
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  Start();
  for (uint32_t i = 0; i < 4; ++i) {
    dispatcher_->Submit(MakeTrial(i));
    ASSERT_OK(dispatcher_->Next());
  }
  std::lock_guard lock(mutex);
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[0].best_cost_s(), 0);
  EXPECT_EQ(seen[0].hopeless_ratio(), 10);
  const auto records = Records();
  EXPECT_EQ(seen[1].best_cost_s(), store::MeanCost(records[0]));
  const double best = std::min(store::MeanCost(records[0]), store::MeanCost(records[1]));
  EXPECT_EQ(seen[2].best_cost_s(), best);
  EXPECT_EQ(seen[3].best_cost_s(), best);
  EXPECT_TRUE(records[2].stopped_early);
}

TEST_F(DispatchTest, AReferenceThatDoesNotBuildEndsTheJob) {
  FakeBuilder builder([](auto&, const v1::BuildRequest& request, v1::BuildReply& reply) {
    if (request.steps() == "[]") {
      reply.set_error(v1::COMPILE_HOST_ERROR);
      reply.set_message("no such instruction");
    }
    return grpc::Status::OK;
  });
  FakeRunner runner;
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  Start();
  dispatcher_->Submit(MakeTrial(0));
  EXPECT_THAT(dispatcher_->Next(),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("no such instruction")));
}

TEST_F(DispatchTest, AReferenceThatDoesNotRunEndsTheJob) {
  FakeBuilder builder;
  FakeRunner runner([](auto&, const auto&, auto&) {
    return grpc::Status(grpc::StatusCode::INTERNAL, "the reference: run timeout");
  });
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  Start();
  for (uint32_t i = 0; i < 4; ++i) dispatcher_->Submit(MakeTrial(i));
  Status status;
  while (status.ok()) status = dispatcher_->Next().status();
  EXPECT_THAT(status, StatusIs(StatusCode::kFailedPrecondition, HasSubstr("run timeout")));
}

TEST_F(DispatchTest, FaultsAreBuiltInAndARefusalEndsTheJob) {
  std::atomic<bool> allowed{true};
  FakeBuilder builder([&](auto&, const v1::BuildRequest& request, v1::BuildReply& reply) {
    if (request.fault() == v1::FAULT_NONE) return grpc::Status::OK;
    if (!allowed) {
      return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "start it with --allow-faults");
    }
    reply.set_error(v1::COMPILE_HOST_ERROR);
    reply.set_message(v1::Fault_Name(request.fault()));
    return grpc::Status::OK;
  });
  FakeRunner runner;
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  (*job_.options.mutable_faults())[1] = v1::FAULT_COMPILER_CRASH;
  (*job_.options.mutable_faults())[5] = v1::FAULT_NULL_STORE;
  Start();
  EXPECT_EQ(RunTrials(0, 3).size(), 3u);
  EXPECT_EQ(Records()[1].message, "FAULT_COMPILER_CRASH");
  EXPECT_EQ(Records()[0].error, store::kNoError);
  allowed = false;
  dispatcher_->Submit(MakeTrial(5));
  EXPECT_THAT(dispatcher_->Next(),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("--allow-faults")));
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
  EXPECT_THAT(dispatcher_->Next(), StatusIs(StatusCode::kCancelled, testing::_));
  dispatcher_.reset();
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
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
  EXPECT_THAT(dispatcher_->Next(), StatusIs(StatusCode::kCancelled, testing::_));
}

TEST_F(DispatchTest, WakeEndsNextWithoutAnOutcome) {
  FakeRunner runner;
  AddRunner(runner, "r1");
  Start();
  std::thread waker([&] {
    absl::SleepFor(absl::Milliseconds(20));
    dispatcher_->Wake();
  });
  ASSERT_OK_AND_ASSIGN(const auto none, dispatcher_->Next());
  EXPECT_FALSE(none.has_value());
  waker.join();
  dispatcher_->Wake();  // before Next
  EXPECT_FALSE(dispatcher_->Next()->has_value());
}

// It takes all the leases that a job may have, and none of its trials.
TEST_F(DispatchTest, ABuilderThatCannotBeReachedIsLeftForOthers) {
  FakeBuilder gone, good;
  FakeRunner runner;
  AddBuilder(gone, "a", 4);
  gone.workers[0]->StopListening();
  AddBuilder(good, "b", 1);
  AddRunner(runner, "r1");
  DispatchOptions options = QuickDispatch();
  options.max_builders = 2;
  options.connect = std::chrono::milliseconds(50);
  options.first_backoff = options.longest_backoff = std::chrono::seconds(30);
  Start(options);
  const absl::Time start = absl::Now();
  EXPECT_EQ(RunTrials(0, 30).size(), 30u);
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
  EXPECT_EQ(good.calls, 31);
}

// Reads as its artifact says, with a first reading that is too good for one of them.
TEST_F(DispatchTest, FinalistsAreMeasuredInTurnsAndKept) {
  FakeBuilder builder;
  std::mutex mutex;
  std::vector<std::string> order;
  std::map<std::string, int> reads;
  uint32_t repeat = 0, reading_ms = 0;
  FakeRunner runner([&](auto&, const v1::MeasureRequest& request, v1::MeasureReply& reply) {
    std::lock_guard lock(mutex);
    const std::string& steps = request.artifact().binary();
    const bool first = ++reads[steps] == 1;
    order.push_back(steps);
    repeat = request.options().repeat();
    reading_ms = request.options().min_repeat_ms();
    double cost_s = 1e-3;
    if (steps.find("[1]") != std::string::npos) cost_s = first ? 0.9e-3 : 1.2e-3;
    if (steps.find("[3]") != std::string::npos && !first) {
      reply.mutable_result()->set_error(v1::WRONG_ANSWER_ERROR);
      reply.mutable_result()->set_message("element 7");
      return grpc::Status::OK;
    }
    for (uint32_t i = 0; i < repeat; ++i) {
      reply.mutable_result()->add_costs_s(cost_s * (1 + 0.001 * (reads[steps] % 3 + i)));
    }
    reply.mutable_result()->set_run_s(0.01);
    return grpc::Status::OK;
  });
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  job_.options.mutable_measure()->set_repeat(1);
  job_.options.mutable_measure()->set_min_repeat_ms(20);
  Start();
  EXPECT_EQ(RunTrials(0, 3).size(), 3u);
  EXPECT_EQ((*store_->BestOfJob(kJobId, 0))->trial, 0u);
  Finalists list;
  for (const store::Record& record : Records()) list.entries.push_back({record.id, record.steps});
  {
    std::lock_guard lock(mutex);
    order.clear();
  }
  ASSERT_OK(dispatcher_->MeasureAgain({list}));
  std::lock_guard lock(mutex);
  EXPECT_EQ(repeat, 2u);
  EXPECT_EQ(reading_ms, 60u);
  const auto records = Records();
  EXPECT_EQ((*store_->BestOfJob(kJobId, 0))->trial, 1u);
  EXPECT_NEAR(store::Cost(records[0]), 1.2e-3, 1e-5);
  EXPECT_NEAR(store::MeanCost(records[0]), 0.9e-3, 1e-5);
  EXPECT_GT(records[1].confidence_s, 0);
  EXPECT_LT(records[1].confidence_s, 1e-5);
  EXPECT_EQ(records[2].error, v1::WRONG_ANSWER_ERROR);
  EXPECT_THAT(records[2].message, HasSubstr("measured again: element 7"));
  // In turns, back and forth.
  ASSERT_GE(order.size(), 5u);
  EXPECT_EQ(order[0], records[0].steps);
  EXPECT_EQ(order[1], records[1].steps);
  EXPECT_EQ(order[2], records[2].steps);
  EXPECT_EQ(order[3], records[1].steps);
  EXPECT_EQ(order[4], records[0].steps);
  EXPECT_GT(dispatcher_->busy().busy_share, 0);
  EXPECT_EQ(dispatcher_->busy().devices, 1);
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
    // Finalists take turns of one length.
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

// Where there are other runners, they get it.
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

TEST_F(DispatchTest, FinalsBeginAnewWhenTheirRunnerGoes) {
  FakeBuilder builder;
  std::atomic<int> calls{0};
  FakeRunner bad([&](auto&, const auto&, auto&) {
    return ++calls > 4 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "broken") : grpc::Status::OK;
  });
  FakeRunner good;
  AddBuilder(builder, "b1");
  AddRunner(bad, "r1");
  Start();
  EXPECT_EQ(RunTrials(0, 2).size(), 2u);
  Finalists list;
  for (const store::Record& record : Records()) list.entries.push_back({record.id, record.steps});
  AddRunner(good, "r2");
  ASSERT_OK(dispatcher_->MeasureAgain({list, {}}));
  // What the first one said of them is not mixed in.
  for (const store::Record& record : Records()) {
    ASSERT_FALSE(record.final_costs_s.empty());
    EXPECT_LE(static_cast<int>(record.final_costs_s.size()), good.measured);
  }
}

// What a request is for.
bool IsOfLeader(const v1::MeasureRequest& request) {
  return request.options().hopeless_ratio() == 0 && request.options().idle_ms() > 0;
}
bool IsOfFinals(const v1::MeasureRequest& request) {
  return request.options().hopeless_ratio() == 0 && request.options().idle_ms() == 0;
}

// A device that is faster than its builder, which takes 60 ms for a candidate.
class IdleTimeTest : public DispatchTest {
 protected:
  IdleTimeTest()
      : builder_([this](auto&, const auto&, auto&) {
          absl::SleepFor(absl::Milliseconds(build_ms_.load()));
          return grpc::Status::OK;
        }),
        runner_([this](auto& context, const v1::MeasureRequest& request, v1::MeasureReply& reply) {
          while (builder_.calls < hold_until_built_ && !context.IsCancelled()) {
            absl::SleepFor(absl::Milliseconds(1));
          }
          if (IsOfLeader(request)) ++of_leaders_;
          if (IsOfFinals(request)) ++of_finals_;
          if (request.options().hopeless_ratio() > 0) before_last_trial_ = of_leaders_.load();
          const bool wrong = request.artifact().binary() == wrong_ && IsOfLeader(request);
          device_.Measure(context, request, reply);
          if (wrong) {
            reply.mutable_result()->clear_costs_s();
            reply.mutable_result()->set_error(v1::WRONG_ANSWER_ERROR);
            reply.mutable_result()->set_message("element 7");
          } else if (!IsOfLeader(request) && !IsOfFinals(request)) {
            std::lock_guard lock(mutex_);
            longest_wait_s_ = std::max(longest_wait_s_, reply.result().times().run_wait_s());
          }
          if (request.options().hopeless_ratio() == 0)
            other_seed_ = other_seed_ || request.seed() != 7;
          return grpc::Status::OK;
        }) {
    AddBuilder(builder_, "b1", 1);
    AddRunner(runner_, "r1");
    job_.options.set_seed(7);
    job_.options.set_finalists(4);
    job_.options.mutable_measure()->set_idle_ms(2'000);
    job_.options.mutable_measure()->set_timeout_ms(5'000);
  }

  // Fakes go before what calls them otherwise.
  void TearDown() override { dispatcher_ = nullptr; }

  // Those that have been read again.
  std::vector<store::Record> ReadAgain() {
    std::vector<store::Record> records = Records();
    std::erase_if(records, [](const store::Record& r) { return r.final_costs_s.empty(); });
    return records;
  }

  std::atomic<int> build_ms_{60};
  std::atomic<int> hold_until_built_{0};  // trials wait for so many builds
  std::atomic<int> of_leaders_{0}, of_finals_{0}, before_last_trial_{0};
  std::atomic<bool> other_seed_{false};
  std::string wrong_;
  std::mutex mutex_;
  double longest_wait_s_ = 0;
  FakeDevice device_{5};
  FakeBuilder builder_;
  FakeRunner runner_;
};

TEST_F(IdleTimeTest, LeadersAreReadAndNoTrialWaitsLongerThanForAReading) {
  Start();
  EXPECT_EQ(RunTrials(0, 24).size(), 24u);
  EXPECT_GT(of_leaders_, 12);
  {
    std::lock_guard lock(mutex_);
    EXPECT_LT(longest_wait_s_, 0.25) << "of idle times of 2 s";
  }
  EXPECT_TRUE(other_seed_);
  const BusyMeter::Reading busy = dispatcher_->busy();
  EXPECT_GT(busy.leaders_share, 0.2);
  EXPECT_GT(busy.busy_share, busy.leaders_share);
  ASSERT_OK(dispatcher_->EndIdleReadings());
  const int at_end = of_leaders_;
  const auto records = ReadAgain();
  ASSERT_GE(records.size(), 2u);
  for (const store::Record& record : records) {
    EXPECT_EQ(record.final_device, "r1");
    EXPECT_GT(record.final_readings, 0u);
    EXPECT_GT(record.final_run_s, 0);
    EXPECT_NEAR(store::Cost(record), FakeRunner::CostOf(record.steps), 1e-5);
  }
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_LE(of_leaders_, at_end + 1);
}

TEST_F(IdleTimeTest, ReadingsAreWrittenWhileTheJobGoesOn) {
  Start();
  EXPECT_EQ(RunTrials(0, 4).size(), 4u);
  EXPECT_TRUE(Eventually([&] { return !ReadAgain().empty(); }));
}

TEST_F(IdleTimeTest, ABusyDeviceReadsNoLeaders) {
  build_ms_ = 0;
  hold_until_built_ = 31;  // with the reference
  Start();
  EXPECT_EQ(RunTrials(0, 30).size(), 30u);
  EXPECT_EQ(before_last_trial_, 0);
}

TEST_F(IdleTimeTest, NoLeadersAreReadInLockStepOrWithoutIdleTime) {
  job_.options.set_lock_step(true);
  Start();
  EXPECT_EQ(RunTrials(0, 8).size(), 8u);
  absl::SleepFor(absl::Milliseconds(50));
  dispatcher_ = nullptr;
  job_.options.set_lock_step(false);
  job_.options.mutable_measure()->set_idle_ms(0);
  Start();
  EXPECT_EQ(RunTrials(8, 16).size(), 8u);
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(of_leaders_, 0);
}

TEST_F(IdleTimeTest, LeadersGiveWayToOtherJobs) {
  Start();
  EXPECT_EQ(RunTrials(0, 4).size(), 4u);
  EXPECT_TRUE(Eventually([&] { return of_leaders_ > 0; }));
  const int before = cluster_.runners.acquired();
  cluster_.runners.Want("r1");
  EXPECT_TRUE(Eventually([&] {
    return cluster_.runners.held() == 0 || cluster_.runners.acquired() > before;
  })) << "it is let go";
}

TEST_F(IdleTimeTest, ALeaderThatAnswersWronglyTheSecondTimeIsAFailedTrial) {
  wrong_ = R"([["SP", 2, 0, 512, [2], 1]])";  // trial 1
  Start();
  EXPECT_EQ(RunTrials(0, 2).size(), 2u);
  EXPECT_TRUE(Eventually([&] { return Records()[1].error == v1::WRONG_ANSWER_ERROR; }));
  const store::Record failed = Records()[1];
  EXPECT_EQ(failed.message, "when it was measured again: element 7");
  EXPECT_TRUE(failed.costs_s.empty());
  EXPECT_EQ((*store_->BestOfJob(kJobId, 0))->trial, 0u);
  const auto corrections = dispatcher_->TakeCorrections();
  ASSERT_EQ(corrections.size(), 1u);
  EXPECT_EQ(corrections[0].trial, 1u);
  EXPECT_FALSE(corrections[0].valid);
}

TEST_F(IdleTimeTest, FinalsGoOnFromTheReadingsAndBuildNothing) {
  Start();
  EXPECT_EQ(RunTrials(0, 24).size(), 24u);
  const auto best = [&] {
    std::vector<store::Record> records = Records();
    std::ranges::sort(records, store::BetterThan);
    records.resize(3);
    return records;
  };
  const auto finals = [&] {
    Finalists list;
    for (const store::Record& record : best()) {
      list.entries.push_back({record.id,
                              record.steps,
                              {.id = record.id,
                               .costs_s = record.final_costs_s,
                               .readings = record.final_readings,
                               .run_s = record.final_run_s,
                               .device = record.final_device}});
    }
    return list;
  };
  ASSERT_TRUE(Eventually([&] {
    return std::ranges::none_of(
        best(), [](const store::Record& record) { return record.final_costs_s.empty(); });
  }));
  ASSERT_OK(dispatcher_->EndIdleReadings());
  const Finalists list = finals();
  const int builds = builder_.calls;
  ASSERT_OK(dispatcher_->MeasureAgain({list}));
  EXPECT_EQ(builder_.calls, builds);
  // Five turns of each without them.
  EXPECT_LT(of_finals_, 5 * static_cast<int>(list.entries.size()));
  // Once more: all is known.
  const int before = of_finals_;
  ASSERT_OK(dispatcher_->MeasureAgain({finals()}));
  EXPECT_EQ(of_finals_, before);
  for (const store::Record& record : ReadAgain()) {
    EXPECT_NEAR(store::Cost(record), FakeRunner::CostOf(record.steps), 1e-5);
  }
}

}  // namespace
}  // namespace kiln::scheduler
