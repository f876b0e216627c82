#include "scheduler/dispatch/trial_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "base/status_testing.h"
#include "search/policies/first_candidates.h"

namespace kiln::scheduler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr double kNever_s = std::numeric_limits<double>::infinity();

search::Trial MakeTrial(uint32_t number, int task = 0) {
  search::Trial trial;
  trial.task = task;
  trial.number = number;
  return trial;
}

class TrialLedgerTest : public testing::Test {
 protected:
  void Measure(InFlightTrial trial, double cost_s = 1e-3) {
    MeasuredTrial measured;
    measured.record.trial = trial.trial.number;
    measured.record.costs_s = {cost_s};
    measured.trial = std::move(trial.trial);
    ledger_.AddResult(trial.serial, std::move(measured));
  }

  // Returns the results that the writer would get now.
  std::vector<MeasuredTrial> Take() {
    return ledger_.TakeMeasured([] { return true; }, std::nullopt).trials;
  }

  std::vector<uint32_t> Outcomes() {
    std::vector<uint32_t> numbers;
    while (true) {
      ledger_.Wake();
      const auto outcome = ledger_.Next(kNever_s);
      EXPECT_OK(outcome);
      if (!outcome.ok() || !outcome->has_value()) return numbers;
      numbers.push_back((*outcome)->trial.number);
    }
  }

  TrialLedger ledger_;
};

TEST_F(TrialLedgerTest, AnOutcomeComesWhenTheResultIsWritten) {
  Measure(ledger_.Begin(MakeTrial(7)));
  EXPECT_THAT(Outcomes(), IsEmpty());
  std::vector<MeasuredTrial> batch = Take();
  ASSERT_THAT(batch, SizeIs(1));
  EXPECT_THAT(Outcomes(), IsEmpty());
  ledger_.Finish(batch);
  EXPECT_THAT(Outcomes(), ElementsAre(7));
}

// A device that is late for a program lets it wait longer than it runs.
TEST_F(TrialLedgerTest, AnOutcomeHasTheBuildThatTheDeviceHadWaitedFor) {
  const auto awaited = [&](uint32_t number, double build_s, int64_t sent_us, int64_t received_us) {
    InFlightTrial trial = ledger_.Begin(MakeTrial(number));
    MeasuredTrial measured;
    measured.record.trial = number;
    measured.record.costs_s = {1e-3};
    measured.record.build_s = build_s;
    measured.instants.set_build_received_us(1'000);
    measured.instants.set_run_sent_us(sent_us);
    measured.instants.set_run_received_us(received_us);
    measured.trial = std::move(trial.trial);
    ledger_.AddResult(trial.serial, std::move(measured));
    std::vector<MeasuredTrial> batch = Take();
    ledger_.Finish(batch);
    const auto outcome = ledger_.Next(kNever_s);
    EXPECT_OK(outcome);
    return (*outcome)->awaited_build_s;
  };
  EXPECT_EQ(awaited(0, 0.5, 1'100, 9'000), 0.5);
  EXPECT_EQ(awaited(1, 0.5, 9'000, 10'000), std::nullopt) << "it waited for the device";
  EXPECT_EQ(awaited(2, 0, 1'100, 9'000), std::nullopt) << "it was not built for the trial";
  EXPECT_EQ(awaited(3, 0.5, 0, 0), std::nullopt) << "it did not come to a device";
}

// If a job is stopped, it has no record of the task, or the record of its first schedule is among
// them.
TEST_F(TrialLedgerTest, ResultsWaitForThatOfTheHeuristicSchedule) {
  search::Trial heuristic = MakeTrial(0);
  heuristic.candidate.origin = std::string(search::kHeuristicOrigin) + "sketch 1, by rule";
  const InFlightTrial first = ledger_.Begin(std::move(heuristic));
  Measure(ledger_.Begin(MakeTrial(1)));
  Measure(ledger_.Begin(MakeTrial(2, /*task=*/1)));
  std::vector<MeasuredTrial> batch = Take();
  ASSERT_THAT(batch, SizeIs(1));
  EXPECT_EQ(batch[0].trial.number, 2u);
  Measure(ledger_.Begin(MakeTrial(3)));
  Measure(first);
  batch = Take();
  ASSERT_THAT(batch, SizeIs(3));
  EXPECT_EQ(batch[0].trial.number, 0u);
  EXPECT_EQ(batch[1].trial.number, 1u);
  EXPECT_EQ(batch[2].trial.number, 3u);
  Measure(ledger_.Begin(MakeTrial(4)));
  EXPECT_THAT(Take(), SizeIs(1));
}

TEST_F(TrialLedgerTest, WhatIsHeldBackIsAbandonedWithItsTask) {
  search::Trial heuristic = MakeTrial(0);
  heuristic.candidate.origin = std::string(search::kHeuristicOrigin);
  const InFlightTrial first = ledger_.Begin(std::move(heuristic));
  Measure(ledger_.Begin(MakeTrial(1)));
  EXPECT_THAT(ledger_.Abandon(0), ElementsAre(0, 1));
  Measure(first);
  EXPECT_THAT(Outcomes(), IsEmpty());
}

TEST_F(TrialLedgerTest, AbandonHasWhatIsInHandOrMeasuredAndNextTheRest) {
  const InFlightTrial in_hand = ledger_.Begin(MakeTrial(1));
  Measure(ledger_.Begin(MakeTrial(2)));
  std::vector<MeasuredTrial> written = Take();
  Measure(ledger_.Begin(MakeTrial(0)));
  const InFlightTrial other = ledger_.Begin(MakeTrial(3, /*task=*/1));
  EXPECT_THAT(ledger_.Abandon(0), ElementsAre(0, 1));
  EXPECT_TRUE(in_hand.abandoned.stop_requested());
  EXPECT_FALSE(other.abandoned.stop_requested());
  EXPECT_THAT(ledger_.Abandon(0), IsEmpty());
  ledger_.Finish(written);
  EXPECT_THAT(Outcomes(), ElementsAre(2));
  Measure(in_hand);
  EXPECT_THAT(Take(), IsEmpty()) << "a result that is not wanted any more";
}

TEST_F(TrialLedgerTest, ANumberThatIsGivenOutAgainIsAnotherTrial) {
  const InFlightTrial first = ledger_.Begin(MakeTrial(5));
  ledger_.Abandon(0);
  const InFlightTrial second = ledger_.Begin(MakeTrial(5));
  EXPECT_FALSE(ledger_.IsInFlight(first.serial));
  EXPECT_TRUE(ledger_.IsInFlight(second.serial));
  Measure(first);
  EXPECT_THAT(Take(), IsEmpty());
  Measure(second);
  EXPECT_THAT(Take(), SizeIs(1));
}

TEST_F(TrialLedgerTest, CorrectionsWaitForTheirOutcomes) {
  Measure(ledger_.Begin(MakeTrial(1)));
  std::vector<MeasuredTrial> batch = Take();
  const search::Correction correction{.trial = 1, .valid = true, .cost_s = 2e-3};
  EXPECT_THAT(ledger_.Deliverable({correction}), IsEmpty()) << "it is being written";
  ledger_.Finish(batch);
  EXPECT_THAT(ledger_.Deliverable({}), IsEmpty()) << "Next has not returned it";
  ASSERT_THAT(Outcomes(), ElementsAre(1));
  EXPECT_THAT(ledger_.Deliverable({}), SizeIs(1));
  EXPECT_THAT(ledger_.Deliverable({}), IsEmpty());
}

TEST_F(TrialLedgerTest, TheFirstFailureEndsNextAndRaces) {
  ledger_.BeginRaces(1);
  std::thread failing([this] {
    ledger_.Fail(Unavailable("the first"));
    ledger_.Fail(Unavailable("the second"));
  });
  EXPECT_EQ(Message(ledger_.WaitForRaces()), "the first");
  failing.join();
  ledger_.Stop();
  EXPECT_EQ(Message(ledger_.Next(kNever_s).status()), "the first");
  EXPECT_FALSE(ledger_.IsOpen());
}

TEST_F(TrialLedgerTest, AStopCancelsWhatIsOpen) {
  ledger_.Stop();
  EXPECT_OK(ledger_.WaitForRaces());
  ledger_.BeginRaces(2);
  ledger_.EndRace();
  EXPECT_EQ(ledger_.WaitForRaces().code(), StatusCode::kCancelled);
  EXPECT_EQ(ledger_.Next(kNever_s).status().code(), StatusCode::kCancelled);
}

TEST_F(TrialLedgerTest, TheWriterHasTheLastResultsBeforeTheEnd) {
  Measure(ledger_.Begin(MakeTrial(1)));
  ledger_.Close();
  const TrialLedger::Batch last = ledger_.TakeMeasured([] { return false; }, std::nullopt);
  EXPECT_TRUE(last.closing);
  EXPECT_THAT(last.trials, SizeIs(1));
  EXPECT_THAT(ledger_.TakeMeasured([] { return false; }, std::nullopt).trials, IsEmpty());
}

}  // namespace
}  // namespace kiln::scheduler
