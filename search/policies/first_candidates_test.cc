#include "search/policies/first_candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "search/policies/random_policy.h"

namespace kiln::search {
namespace {

using testing::IsEmpty;

class FirstCandidatesTest : public testing::Test {
 protected:
  FirstCandidatesTest() {
    // Another seed draws the schedules that stand for those chosen without measuring.
    RandomPolicy others(task_, Parameters(), 2);
    heuristic_ = *others.Propose(2);
  }
  FirstCandidates Make(FirstOptions options = {}) {
    options.heuristic = heuristic_;
    return FirstCandidates(task_, std::make_unique<RandomPolicy>(task_, Parameters(), 1),
                           std::move(options));
  }
  static Observation Of(const Candidate& candidate, double cost_s,
                        std::optional<double> reference_s = {}) {
    Observation o;
    o.candidate = candidate;
    o.valid = cost_s > 0;
    o.cost_s = cost_s;
    o.reference_s = reference_s;
    return o;
  }
  static bool IsUnscheduled(const Candidate& candidate) { return candidate.steps.empty(); }

  const Task task_{*dag::BuildOp("matmul", "64,64,64", {}), target::Target{},
                   target::HardwareParams{.num_cores = 2}, "[]"};
  std::vector<Candidate> heuristic_;
};

TEST_F(FirstCandidatesTest, TheHeuristicSchedulesAreTheFirstAndAreProposedOnce) {
  FirstCandidates policy = Make();
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> first, policy.Propose(4));
  ASSERT_EQ(first.size(), 4u);
  EXPECT_EQ(first[0].hash, heuristic_[0].hash);
  EXPECT_EQ(first[1].hash, heuristic_[1].hash);
  EXPECT_EQ(policy.last_round().proposed, 4);
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> second, policy.Propose(8));
  ASSERT_EQ(second.size(), 8u);
  for (const Candidate& candidate : second) {
    EXPECT_NE(candidate.hash, heuristic_[0].hash);
    EXPECT_FALSE(IsUnscheduled(candidate));
  }
}

TEST_F(FirstCandidatesTest, ARoundOfOneIsTheHeuristicSchedule) {
  FirstCandidates policy = Make();
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> first, policy.Propose(1));
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].hash, heuristic_[0].hash);
  EXPECT_EQ(policy.last_round().proposed, 1);
}

// The task is one of several.
TEST_F(FirstCandidatesTest, TheSecondOneCanComeAfterResultsOfTheOthers) {
  FirstCandidates policy = Make({.results_before_second = 3});
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> first, policy.Propose(4));
  ASSERT_EQ(first.size(), 4u);
  EXPECT_EQ(first[0].hash, heuristic_[0].hash);
  for (const Candidate& candidate : first) EXPECT_NE(candidate.hash, heuristic_[1].hash);
  std::vector<Observation> results;
  for (const Candidate& candidate : first) results.push_back(Of(candidate, 1e-3));
  policy.Observe(results);
  EXPECT_EQ(policy.Propose(2)->at(0).hash, heuristic_[1].hash);
}

TEST_F(FirstCandidatesTest, TheSecondOneComesWhereTheFirstOneFailsOrNothingElseIsLeft) {
  FirstCandidates failing = Make({.results_before_second = 100});
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> first, failing.Propose(1));
  const Observation failed = Of(first[0], 0);
  failing.Observe({&failed, 1});
  EXPECT_EQ(failing.Propose(1)->at(0).hash, heuristic_[1].hash);
  FirstOptions options{.heuristic = heuristic_, .results_before_second = 100};
  FirstCandidates alone(task_, std::make_unique<EmptyPolicy>(task_), std::move(options));
  EXPECT_EQ(alone.Propose(1)->at(0).hash, heuristic_[0].hash);
  EXPECT_EQ(alone.Propose(1)->at(0).hash, heuristic_[1].hash);
}

TEST_F(FirstCandidatesTest, TheUnscheduledLoopsAreACandidateWhereTheyAreNotFarSlower) {
  FirstCandidates policy = Make();
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> first, policy.Propose(1));
  const Observation slow = Of(first[0], 1e-3, 2.5e-3);
  policy.Observe({&slow, 1});
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> second, policy.Propose(2));
  for (const Candidate& candidate : second) EXPECT_FALSE(IsUnscheduled(candidate));

  FirstCandidates near = Make();
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> again, near.Propose(2));
  const Observation fast = Of(again[0], 1e-3, 1.9e-3);
  near.Observe({&fast, 1});
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> third, near.Propose(2));
  ASSERT_EQ(third.size(), 2u);
  EXPECT_TRUE(IsUnscheduled(third[0]));
  EXPECT_FALSE(IsUnscheduled(third[1]));
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> fourth, near.Propose(4));
  for (const Candidate& candidate : fourth) EXPECT_FALSE(IsUnscheduled(candidate));
}

TEST_F(FirstCandidatesTest, WhereNothingWorksTheUnscheduledLoopsAreTried) {
  FirstCandidates policy = Make();
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> first, policy.Propose(2));
  const Observation failed[] = {Of(first[0], 0), Of(first[1], 0)};
  policy.Observe(failed);
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> next, policy.Propose(1));
  ASSERT_EQ(next.size(), 1u);
  EXPECT_TRUE(IsUnscheduled(next[0]));
}

// The candidates were measured by the job itself, by an earlier run of it, or by another job.
TEST_F(FirstCandidatesTest, WhatWasMeasuredBeforeIsNotMeasuredAgain) {
  const uint64_t unscheduled = schedule::HashSteps({});
  Observation loops = Of({{}, unscheduled}, 1e-3, 1e-3);
  loops.record = 17;
  const Observation before[] = {Of(heuristic_[0], 1e-3), Of(heuristic_[1], 1e-3), loops};
  FirstCandidates observed = Make();
  observed.Observe(before);
  FirstCandidates avoided = Make({.reference_s = 1e-3});
  const uint64_t hashes[] = {heuristic_[0].hash, heuristic_[1].hash, unscheduled};
  avoided.AvoidFirst(hashes);
  for (FirstCandidates* policy : {&observed, &avoided}) {
    ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> next, policy->Propose(4));
    ASSERT_EQ(next.size(), 4u);
    for (const Candidate& candidate : next) {
      EXPECT_FALSE(IsUnscheduled(candidate));
      EXPECT_NE(candidate.hash, heuristic_[0].hash);
      EXPECT_NE(candidate.hash, heuristic_[1].hash);
    }
  }
}

TEST_F(FirstCandidatesTest, LoopsThatTakeTooLongAreNeverACandidate) {
  FirstCandidates policy = Make({.with_unscheduled = false, .reference_s = 1e-6});
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> first, policy.Propose(2));
  const Observation failed[] = {Of(first[0], 0), Of(first[1], 0)};
  policy.Observe(failed);
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> next, policy.Propose(16));
  for (const Candidate& candidate : next) EXPECT_FALSE(IsUnscheduled(candidate));
}

}  // namespace
}  // namespace kiln::search
