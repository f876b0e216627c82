#include "search/policies/unscheduled_first.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "search/policies/random_policy.h"

namespace kiln::search {
namespace {

using testing::IsEmpty;

class UnscheduledFirstTest : public testing::Test {
 protected:
  UnscheduledFirst Make() {
    return UnscheduledFirst(task_, std::make_unique<RandomPolicy>(task_, Parameters(), 1));
  }
  static Observation Of(Candidate candidate) {
    Observation o;
    o.candidate = std::move(candidate);
    o.valid = true;
    o.cost_s = 1e-3;
    return o;
  }

  const Task task_{*dag::BuildOp("matmul", "64,64,64", {}), target::Target{},
                   target::HardwareParams{.num_cores = 2}, "[]"};
};

TEST_F(UnscheduledFirstTest, IsTheFirstOfAllAndIsProposedOnce) {
  UnscheduledFirst policy = Make();
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> first, policy.Propose(4));
  ASSERT_EQ(first.size(), 4u);
  EXPECT_THAT(first[0].steps, IsEmpty());
  EXPECT_EQ(policy.last_round().proposed, 4);
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> second, policy.Propose(8));
  EXPECT_EQ(second.size(), 8u);
  for (size_t i = 0; i < second.size(); ++i) EXPECT_FALSE(second[i].steps.empty());
}

TEST_F(UnscheduledFirstTest, ARoundOfOneIsTheUnscheduledLoops) {
  UnscheduledFirst policy = Make();
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> first, policy.Propose(1));
  ASSERT_EQ(first.size(), 1u);
  EXPECT_THAT(first[0].steps, IsEmpty());
  EXPECT_EQ(policy.last_round().proposed, 1);
}

TEST_F(UnscheduledFirstTest, AJobThatGoesOnHasItsReading) {
  UnscheduledFirst before = Make();
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> first, before.Propose(1));
  UnscheduledFirst policy = Make();
  const Observation read = Of(first[0]);
  policy.Observe({&read, 1});
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> next, policy.Propose(2));
  for (const Candidate& candidate : next) EXPECT_FALSE(candidate.steps.empty());
}

TEST_F(UnscheduledFirstTest, AReadingOfAnEarlierJobIsNotItsOwn) {
  UnscheduledFirst policy = Make();
  Observation earlier = Of({{}, schedule::HashSteps({})});
  earlier.record = 17;
  policy.Observe({&earlier, 1});
  policy.Avoid({&earlier.candidate.hash, 1});
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> first, policy.Propose(2));
  ASSERT_EQ(first.size(), 2u);
  EXPECT_THAT(first[0].steps, IsEmpty());
  EXPECT_FALSE(first[1].steps.empty());
}

}  // namespace
}  // namespace kiln::search
