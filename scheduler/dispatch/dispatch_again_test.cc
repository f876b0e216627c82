// Further readings of the best candidates: final race, and elites while a device is idle.
#include <algorithm>
#include <mutex>
#include <set>
#include <thread>

#include "base/status_testing.h"
#include "rpc/yield_reply.h"
#include "scheduler/dispatch/dispatch.h"
#include "scheduler/dispatch/dispatch_testing.h"
#include "scheduler/dispatch/workers_testing.h"

namespace kiln::scheduler {
namespace {

using testing::HasSubstr;

// Long readings would take longer than the job's trials did.
TEST_F(DispatchTest, TheFinalRaceOfAShortJobHasShortReadings) {
  FakeBuilder builder;
  std::mutex mutex;
  int readings = 0, calls = 0;
  uint32_t reading_ms = 0;
  FakeRunner runner([&](auto&, const v1::MeasureRequest& request, v1::MeasureReply& reply) {
    std::lock_guard lock(mutex);
    ++calls;
    readings += static_cast<int>(request.options().repeat());
    reading_ms = request.options().min_repeat_ms();
    for (uint32_t i = 0; i < request.options().repeat(); ++i) {
      reply.mutable_result()->add_costs_s(1e-3 * (1 + 0.001 * (calls % 3 + i)));
    }
    return grpc::Status::OK;
  });
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  job_.options.set_trials(8);
  job_.options.mutable_measure()->set_repeat(3);
  job_.options.mutable_measure()->set_min_repeat_ms(20);
  Start();
  EXPECT_EQ(RunTrials(0, 2).size(), 2u);
  Finalists list;
  for (const store::Record& record : Records()) list.entries.push_back({record.id, record.steps});
  {
    std::lock_guard lock(mutex);
    calls = readings = 0;
  }
  ASSERT_OK(dispatcher_->MeasureAgain({list}));
  std::lock_guard lock(mutex);
  EXPECT_GE(calls, 4);
  EXPECT_EQ(readings, 2 * calls);
  EXPECT_EQ(reading_ms, 20u);
}

// One candidate's first reading is better than its later ones; the other costs follow the artifact.
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
  ASSERT_TRUE(records[1].confidence_s.has_value());
  EXPECT_LT(*records[1].confidence_s, 1e-5);
  EXPECT_EQ(records[2].error, v1::WRONG_ANSWER_ERROR);
  EXPECT_THAT(records[2].message, HasSubstr("measured again: element 7"));
  // The turns go back and forth.
  ASSERT_GE(order.size(), 5u);
  EXPECT_EQ(order[0], records[0].steps);
  EXPECT_EQ(order[1], records[1].steps);
  EXPECT_EQ(order[2], records[2].steps);
  EXPECT_EQ(order[3], records[1].steps);
  EXPECT_EQ(order[4], records[0].steps);
  EXPECT_GT(dispatcher_->busy().busy_share, 0);
  EXPECT_EQ(dispatcher_->busy().devices, 1);
}

// Another job of higher priority gets the runner in the middle of a reading, which would take half
// a minute. Readings that were taken are not taken again.
TEST_F(DispatchTest, AFinalRaceYieldsItsRunner) {
  FakeBuilder builder;
  std::atomic<int> calls{0};
  std::atomic<int> hangs_at{-1};
  std::atomic<bool> hung{false};
  FakeRunner runner([&](grpc::ServerContext& context, const v1::MeasureRequest& request,
                        v1::MeasureReply& reply) {
    if (++calls == hangs_at) {
      hung = true;
      while (!context.IsCancelled()) absl::SleepFor(absl::Milliseconds(5));
    }
    for (uint32_t i = 0; i < std::max(1u, request.options().repeat()); ++i)
      reply.mutable_result()->add_costs_s(1e-3 * (1 + 0.001 * i));
    return grpc::Status::OK;
  });
  AddBuilder(builder, "b1");
  AddRunner(runner, "r1");
  DispatchOptions options = QuickDispatch();
  options.measure_slack = std::chrono::milliseconds(30'000);
  Start(options);
  EXPECT_EQ(RunTrials(0, 2).size(), 2u);
  Finalists list;
  for (const store::Record& record : Records()) list.entries.push_back({record.id, record.steps});
  hangs_at = calls + 4;
  const int before = calls;
  std::jthread racing([&] { EXPECT_OK(dispatcher_->MeasureAgain({list})); });
  ASSERT_TRUE(Eventually([&] { return hung.load(); }));
  const int acquired = cluster_.runners.acquired();
  cluster_.runners.Want("r1");
  ASSERT_TRUE(Eventually([&] { return cluster_.runners.acquired() > acquired; }));
  racing.join();
  // Five turns of each entry, one turn that was cut short, and one that repeats its lost reading.
  EXPECT_LE(calls - before, 2 * 5 + 2);
  for (const store::Record& record : Records()) {
    EXPECT_GE(record.remeasured_costs_s.size(), 10u);
    EXPECT_LE(record.remeasured_costs_s.size(), 12u);
  }
}

TEST_F(DispatchTest, AFinalRaceBeginsAnewWhenItsRunnerGoes) {
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
  // Readings by the first runner are not mixed in.
  for (const store::Record& record : Records()) {
    ASSERT_FALSE(record.remeasured_costs_s.empty());
    EXPECT_LE(static_cast<int>(record.remeasured_costs_s.size()), good.measured);
  }
}

// Tells the purpose of a request by its options.
bool IsOfElite(const v1::MeasureRequest& request) {
  return request.options().early_stop_ratio() == 0 && request.options().idle_ms() > 0;
}
bool IsOfFinalRace(const v1::MeasureRequest& request) {
  return request.options().early_stop_ratio() == 0 && request.options().idle_ms() == 0;
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
          const bool yields = IsOfElite(request)
                                  ? elites_to_yield_-- > 0
                                  : IsOfFinalRace(request) && of_final_race_ % 3 == 2;
          if (yields && yields_left_-- > 0) {
            return YieldReply(context, {v1::WORKER_PAUSED, "paused by ada"});
          }
          if (IsOfElite(request)) ++of_elites_;
          if (IsOfFinalRace(request)) ++of_final_race_;
          if (request.options().early_stop_ratio() > 0) before_last_trial_ = of_elites_.load();
          const bool wrong = request.artifact().binary() == wrong_ && IsOfElite(request);
          device_.Measure(context, request, reply);
          if (wrong) {
            reply.mutable_result()->clear_costs_s();
            reply.mutable_result()->set_error(v1::WRONG_ANSWER_ERROR);
            reply.mutable_result()->set_message("element 7");
          }
          // The device makes 100 readings of an elite unless another trial comes.
          if (IsOfElite(request) && reply.result().costs_s_size() < 100) ++cut_short_;
          if (IsOfElite(request)) other_seed_ = other_seed_ || request.seed() != 7;
          if (IsOfFinalRace(request)) races_of_other_seed_ += request.seed() != 7 ? 1 : 0;
          return grpc::Status::OK;
        }) {
    AddBuilder(builder_, "b1", 1);
    AddRunner(runner_, "r1");
    job_.options.set_seed(7);
    job_.options.set_finalists(4);
    job_.options.mutable_measure()->set_idle_ms(2'000);
    job_.options.mutable_measure()->set_timeout_ms(5'000);
  }

  // The dispatcher is dropped before the fakes that it calls.
  void TearDown() override { dispatcher_ = nullptr; }

  // Returns the records that were read again.
  std::vector<store::Record> ReadAgain() {
    std::vector<store::Record> records = Records();
    std::erase_if(records, [](const store::Record& r) { return r.remeasured_costs_s.empty(); });
    return records;
  }

  std::atomic<int> build_ms_{60};
  std::atomic<int> hold_until_built_{0};  // trials wait for so many builds
  std::atomic<int> of_elites_{0}, of_final_race_{0}, before_last_trial_{0};
  std::atomic<bool> other_seed_{false};  // whether an elite was read with another seed
  std::atomic<int> races_of_other_seed_{0};
  std::atomic<int> elites_to_yield_{0}, yields_left_{0};
  std::string wrong_;
  std::atomic<int> cut_short_{0};  // readings of elites that ended because a trial came
  FakeDevice device_{5};
  FakeBuilder builder_;
  FakeRunner runner_;
};

TEST_F(IdleTimeTest, ElitesAreReadAndTrialsComeInTheMiddleOfTheirReadings) {
  Start();
  EXPECT_EQ(RunTrials(0, 24).size(), 24u);
  EXPECT_GT(of_elites_, 12);
  EXPECT_GT(cut_short_, 0);
  EXPECT_TRUE(other_seed_);
  const BusyMeter::Reading busy = dispatcher_->busy();
  EXPECT_GT(busy.elites_share, 0.2);
  EXPECT_GT(busy.busy_share, busy.elites_share);
  ASSERT_OK(dispatcher_->EndIdleReadings());
  const int at_end = of_elites_;
  const auto records = ReadAgain();
  ASSERT_GE(records.size(), 2u);
  for (const store::Record& record : records) {
    EXPECT_EQ(record.remeasured_device, "r1");
    EXPECT_GT(record.remeasurements, 0u);
    EXPECT_GT(record.remeasured_run_s, 0);
    EXPECT_NEAR(store::Cost(record), FakeRunner::CostOf(record.steps), 1e-5);
  }
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_LE(of_elites_, at_end + 1);
}

TEST_F(IdleTimeTest, ReadingsAreWrittenWhileTheJobGoesOn) {
  Start();
  EXPECT_EQ(RunTrials(0, 4).size(), 4u);
  EXPECT_TRUE(Eventually([&] { return !ReadAgain().empty(); }));
}

TEST_F(IdleTimeTest, ABusyDeviceReadsNoElites) {
  build_ms_ = 0;
  hold_until_built_ = 31;  // thirty candidates and the reference
  Start();
  EXPECT_EQ(RunTrials(0, 30).size(), 30u);
  EXPECT_EQ(before_last_trial_, 0);
}

TEST_F(IdleTimeTest, NoElitesAreReadInLockStepOrWithoutIdleTime) {
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
  EXPECT_EQ(of_elites_, 0);
}

TEST_F(IdleTimeTest, ElitesGiveWayToOtherJobs) {
  Start();
  EXPECT_EQ(RunTrials(0, 4).size(), 4u);
  EXPECT_TRUE(Eventually([&] { return of_elites_ > 0; }));
  const int before = cluster_.runners.acquired();
  cluster_.runners.Want("r1");
  EXPECT_TRUE(Eventually([&] {
    return cluster_.runners.held() == 0 || cluster_.runners.acquired() > before;
  })) << "it is let go";
}

TEST_F(IdleTimeTest, AnEliteThatAnswersWronglyTheSecondTimeIsAFailedTrial) {
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

TEST_F(IdleTimeTest, TheFinalRaceGoesOnFromTheReadingsAndBuildsNothing) {
  Start();
  EXPECT_EQ(RunTrials(0, 24).size(), 24u);
  const auto best = [&] {
    std::vector<store::Record> records = Records();
    std::ranges::sort(records, store::BetterThan);
    records.resize(3);
    return records;
  };
  const auto remeasured = [&] {
    Finalists list;
    for (const store::Record& record : best()) {
      list.entries.push_back({record.id,
                              record.steps,
                              {.id = record.id,
                               .costs_s = record.remeasured_costs_s,
                               .readings = record.remeasurements,
                               .run_s = record.remeasured_run_s,
                               .device = record.remeasured_device}});
    }
    return list;
  };
  ASSERT_TRUE(Eventually([&] {
    return std::ranges::none_of(
        best(), [](const store::Record& record) { return record.remeasured_costs_s.empty(); });
  }));
  ASSERT_OK(dispatcher_->EndIdleReadings());
  const Finalists list = remeasured();
  const int builds = builder_.calls;
  ASSERT_OK(dispatcher_->MeasureAgain({list}));
  EXPECT_EQ(builder_.calls, builds);
  // Five turns of each would be needed without the readings of elites.
  EXPECT_LT(of_final_race_, 5 * static_cast<int>(list.entries.size()));
  // A second race takes no reading, because the order is known.
  const int before = of_final_race_;
  ASSERT_OK(dispatcher_->MeasureAgain({remeasured()}));
  EXPECT_EQ(of_final_race_, before);
  for (const store::Record& record : ReadAgain()) {
    EXPECT_NEAR(store::Cost(record), FakeRunner::CostOf(record.steps), 1e-5);
  }
}

// With other inputs the reference has to run again, and a trial that comes would have to wait for
// it.
TEST_F(IdleTimeTest, FinalistsAreCheckedWithOtherInputsEvenWhereElitesAreNot) {
  job_.tasks[0].reference_cost_s = 0.5;
  job_.options.mutable_measure()->set_idle_ms(100);
  Start();
  EXPECT_EQ(RunTrials(0, 4).size(), 4u);
  EXPECT_TRUE(Eventually([&] { return of_elites_ > 0; }));
  ASSERT_OK(dispatcher_->EndIdleReadings());
  EXPECT_FALSE(other_seed_);
  Finalists list;
  for (const store::Record& record : Records()) {
    list.entries.push_back({record.id, record.steps, {.id = record.id}});
  }
  ASSERT_OK(dispatcher_->MeasureAgain({list}));
  EXPECT_GT(of_final_race_, 0);
  EXPECT_EQ(races_of_other_seed_, of_final_race_);
}

// The readings of a race stay when the runner is paused, and nothing is given up, however often.
TEST_F(IdleTimeTest, APausedRunnerEndsNoRace) {
  yields_left_ = 6;
  elites_to_yield_ = 2;
  Start();
  EXPECT_EQ(RunTrials(0, 4).size(), 4u);
  EXPECT_TRUE(Eventually([&] { return of_elites_ > 0; }));
  ASSERT_OK(dispatcher_->EndIdleReadings());
  EXPECT_EQ(yields_left_, 4);
  Finalists list;
  for (const store::Record& record : Records()) {
    list.entries.push_back({record.id, record.steps, {.id = record.id}});
  }
  ASSERT_OK(dispatcher_->MeasureAgain({list}));
  EXPECT_LE(yields_left_, 0);
  EXPECT_EQ(ReadAgain().size(), list.entries.size());
}

}  // namespace
}  // namespace kiln::scheduler
