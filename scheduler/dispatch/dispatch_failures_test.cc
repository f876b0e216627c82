// Failures on the way of a trial: candidates, workers, leases, references.
#include <atomic>

#include "base/status_testing.h"
#include "rpc/yield_reply.h"
#include "scheduler/dispatch/dispatch_testing.h"
#include "scheduler/dispatch/workers_testing.h"

namespace kiln::scheduler {
namespace {

using testing::HasSubstr;

// More pauses than a trial has attempts. The worker that yields is left alone, the trials go on
// when it takes them again, and none has failed.
TEST_F(DispatchTest, AWorkerThatYieldsCostsTheTrialNothing) {
  const EffectiveMode paused = {v1::WORKER_PAUSED, "paused by ada"};
  std::atomic<int> runner_yields{8}, builder_yields{8};
  FakeBuilder builder([&](grpc::ServerContext& context, const auto&, auto&) {
    return builder_yields-- > 0 ? YieldReply(context, paused) : grpc::Status::OK;
  });
  FakeRunner runner([&](grpc::ServerContext& context, const auto&, auto&) {
    return runner_yields-- > 0 ? YieldReply(context, paused) : grpc::Status::OK;
  });
  AddBuilder(builder, "b1", 1);
  AddRunner(runner, "r1");
  Start();
  EXPECT_EQ(RunTrials(0, 3).size(), 3u);
  const auto records = Records();
  ASSERT_EQ(records.size(), 3u);
  for (const store::Record& record : records) EXPECT_EQ(record.error, store::kNoError);
  EXPECT_LT(runner_yields, 0);
  EXPECT_LT(builder_yields, 0);
}

TEST_F(DispatchTest, WhatAYieldingWorkerSaysIsTheReasonOfTheWait) {
  std::atomic<bool> yields{true};
  FakeBuilder builder;
  FakeRunner runner([&](grpc::ServerContext& context, const auto&, auto&) {
    return yields ? YieldReply(context, {v1::WORKER_PAUSED, "paused by ada"}) : grpc::Status::OK;
  });
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  DispatchOptions options = QuickDispatch();
  options.first_backoff = std::chrono::milliseconds(100);
  Start(options);
  dispatcher_->Submit(MakeTrial(0));
  EXPECT_TRUE(Eventually([&] {
    const Dispatcher::Waiting waiting = dispatcher_->waiting();
    return waiting.for_runner && waiting.problem.ends_with("paused by ada");
  }));
  EXPECT_LT(runner.calls, 200) << "asked again and again without a pause";
  yields = false;
  ASSERT_OK(NextOutcome());
  EXPECT_EQ(Records()[0].error, store::kNoError);
}

// Another runner takes the trial at once.
TEST_F(DispatchTest, ATrialGoesFromAYieldingWorkerToAnother) {
  FakeBuilder builder;
  FakeRunner paused([&](grpc::ServerContext& context, const auto&, auto&) {
    return YieldReply(context, {v1::WORKER_PAUSED, "paused by ada"});
  });
  FakeRunner good;
  AddBuilder(builder, "b1");
  AddRunner(paused, "r1");
  AddRunner(good, "r2");
  Start();
  EXPECT_EQ(RunTrials(0, 10).size(), 10u);
  for (const store::Record& record : Records()) {
    EXPECT_EQ(record.error, store::kNoError) << record.message;
    EXPECT_EQ(record.runner, "r2");
  }
}

// The trials go to another runner, and the one that answers so is left alone.
TEST_F(DispatchTest, AnImpossibleAnswerIsTheRunnersFault) {
  FakeBuilder builder;
  FakeRunner lies([](auto&, const auto&, v1::MeasureReply& reply) {
    reply.mutable_result()->set_max_error(-1);
    return grpc::Status::OK;
  });
  FakeRunner good;
  AddBuilder(builder, "b1");
  AddRunner(lies, "r1");
  AddRunner(good, "r2");
  Start();
  EXPECT_EQ(RunTrials(0, 20).size(), 20u);
  for (const store::Record& record : Records()) {
    EXPECT_EQ(record.error, store::kNoError) << record.message;
    EXPECT_EQ(record.runner, "r2");
  }
  EXPECT_GT(lies.calls, 0);
  EXPECT_LT(lies.calls, 20);
}

TEST_F(DispatchTest, ATrialThatEachRunnerAnswersImpossiblyIsGivenUp) {
  FakeBuilder builder;
  FakeRunner lies([](auto&, const auto&, v1::MeasureReply& reply) {
    reply.mutable_result()->set_run_s(-1);
    return grpc::Status::OK;
  });
  AddBuilder(builder, "b1");
  AddRunner(lies, "r1");
  Start();
  EXPECT_EQ(RunTrials(0, 1).size(), 1u);
  EXPECT_EQ(Records()[0].error, v1::UNKNOWN_ERROR);
  EXPECT_THAT(Records()[0].message, HasSubstr("given up after 3 attempts"));
  EXPECT_THAT(Records()[0].message, HasSubstr("the runner answered a run of -1 s"));
}

// Such a cost would be the best one for ever, and stop all other trials early.
TEST_F(DispatchTest, ACostThatNoDeviceCanHaveIsNoResult) {
  FakeBuilder builder;
  std::atomic<double> best_sent{0};
  FakeRunner runner([&](auto&, const v1::MeasureRequest& request, v1::MeasureReply& reply) {
    best_sent = request.options().best_cost_s();
    if (request.artifact().binary().find("[1]") != std::string::npos) {
      reply.mutable_result()->add_costs_s(1e-15);
      reply.set_reference_cost_s(5e-3);
    }
    return grpc::Status::OK;
  });
  AddRunner(runner, "r1");
  AddBuilder(builder, "b1");
  job_.tasks[0].target = "llvm";
  Start();
  RunTrials(0, 1);
  RunTrials(1, 2);
  const auto records = Records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].error, v1::UNKNOWN_ERROR);
  EXPECT_THAT(records[0].message, HasSubstr("cost 1e-15 s is not plausible"));
  EXPECT_EQ(records[1].error, store::kNoError);
  EXPECT_EQ(best_sent, 0);
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

TEST_F(DispatchTest, ARefusedCandidateGoesToAnotherBuilder) {
  FakeBuilder strict([](auto&, const auto&, auto&) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "an operator that I do not know");
  });
  FakeBuilder good;
  FakeRunner runner;
  AddBuilder(strict, "b1", 1);
  AddBuilder(good, "b2", 1);
  AddRunner(runner, "r1");
  Start();
  EXPECT_EQ(RunTrials(0, 20).size(), 20u);
  for (const store::Record& record : Records()) {
    EXPECT_EQ(record.error, store::kNoError) << record.message;
    EXPECT_EQ(record.builder, "b2");
  }
}

TEST_F(DispatchTest, ARefusalByTwoBuildersIsTheCandidatesFailure) {
  const auto hook = [](auto&, const v1::BuildRequest& request, auto&) {
    const bool is_candidate = request.steps() != store::kNoSteps;
    return is_candidate ? grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "no such step")
                        : grpc::Status::OK;
  };
  FakeBuilder first(hook), second(hook);
  FakeRunner runner;
  AddBuilder(first, "b1", 1);
  AddBuilder(second, "b2", 1);
  AddRunner(runner, "r1");
  Start();
  // One builder alone may be wrong. Then the job cannot go on.
  dispatcher_->Submit(MakeTrial(0));
  dispatcher_->Submit(MakeTrial(1));
  int refused = 0;
  for (int i = 0; i < 2; ++i) {
    const auto outcome = NextOutcome();
    if (!outcome.ok()) {
      EXPECT_THAT(outcome.status(),
                  StatusIs(StatusCode::kInvalidArgument, HasSubstr("refuses trial")));
      break;
    }
    ++refused;
  }
  const std::vector<store::Record> records = Records();
  EXPECT_EQ(records.size(), static_cast<size_t>(refused));
  for (const store::Record& record : records) {
    EXPECT_EQ(record.error, v1::INSTANTIATION_ERROR);
    EXPECT_THAT(record.message, HasSubstr("refuse it: no such step"));
  }
}

// A wrong program would pass if the same builder's reference were compared with it.
TEST_F(DispatchTest, AnotherProgramThanWasAskedForIsNoneOfTheTask) {
  const auto plan_of = [](int64_t extent) {
    return [extent](auto&, const auto&, v1::BuildReply& reply) {
      for (const char* name : {"A", "B"}) {
        v1::ArgSpec& arg = *reply.mutable_artifact()->mutable_plan()->add_args();
        arg.set_name(name);
        arg.set_dtype("float32");
        arg.add_shape(extent);
        arg.set_role(name[0] == 'A' ? v1::ArgSpec::INPUT : v1::ArgSpec::OUTPUT);
      }
      return grpc::Status::OK;
    };
  };
  job_.tasks[0].dag = "input A: float32[16]\nB[i: 16] = A[i] * 2.0\n";
  job_.tasks[0].target = "llvm";
  FakeBuilder small(plan_of(4)), right(plan_of(16));
  FakeRunner runner;
  AddBuilder(small, "b1", 1);
  AddBuilder(right, "b2", 1);
  AddRunner(runner, "r1");
  Start();
  EXPECT_EQ(RunTrials(0, 10).size(), 10u);
  for (const store::Record& record : Records()) {
    EXPECT_EQ(record.error, store::kNoError) << record.message;
    EXPECT_EQ(record.builder, "b2");
  }
  EXPECT_GT(small.calls, 0);
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
  // There are more tries than a trial has attempts.
  const int tries = cluster_.runners.acquired();
  EXPECT_TRUE(Eventually([&] { return cluster_.runners.acquired() >= tries + 4; }));
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
  for (int i = 4; i < 8; ++i) EXPECT_OK(dispatcher_->Next(kNever_s));
  EXPECT_EQ(Records().size(), 8u);
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
  EXPECT_THAT(dispatcher_->Next(kNever_s),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("no such instruction")));
}

TEST_F(DispatchTest, AReferenceIsAskedForMoreOftenThanATrial) {
  std::atomic<int> failures{0};
  FakeBuilder builder([&](auto&, const v1::BuildRequest& request, auto&) {
    if (request.steps() != store::kNoSteps || failures == 5) return grpc::Status::OK;
    ++failures;
    return grpc::Status(grpc::StatusCode::INTERNAL, "no child starts");
  });
  FakeRunner runner;
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  Start();
  EXPECT_EQ(RunTrials(0, 1).size(), 1u);
  EXPECT_EQ(failures, 5);
  EXPECT_EQ(Records()[0].error, store::kNoError);
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
  while (status.ok()) status = dispatcher_->Next(kNever_s).status();
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
  EXPECT_THAT(dispatcher_->Next(kNever_s),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("--allow-faults")));
}

// A builder that cannot be reached takes all the leases that a job may have, but none of its
// trials.
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
  options.first_backoff = options.longest_backoff = std::chrono::minutes(10);
  Start(options);
  const absl::Time start = absl::Now();
  EXPECT_EQ(RunTrials(0, 30).size(), 30u);
  EXPECT_LT(absl::Now() - start, absl::Minutes(5)) << "no trial waits for the other builder";
  EXPECT_EQ(good.calls, 31);
}

}  // namespace
}  // namespace kiln::scheduler
