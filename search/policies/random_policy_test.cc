#include "search/policies/random_policy.h"

#include <gtest/gtest.h>

#include <set>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"

namespace kiln::search {
namespace {

Task MakeTask(dag::DagPtr dag) {
  target::HardwareParams hardware;
  hardware.num_cores = 2;
  return Task(std::move(dag), target::Target{}, hardware, "[]");
}

Task MakeTask(std::string_view op, std::string_view args, std::string_view epilogue = "") {
  auto dag = dag::BuildOp(op, args, {.epilogue = dag::SplitEpilogue(epilogue)});
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  return MakeTask(*dag);
}

TEST(RandomPolicy, SameSeedSameCandidatesOtherSeedOthers) {
  const Task task = MakeTask("matmul", "64,64,64");
  const auto hashes = [&](uint64_t seed) {
    RandomPolicy policy(task, Parameters(), seed);
    std::vector<uint64_t> result;
    const auto candidates = policy.Propose(20);
    for (const Candidate& c : *candidates) result.push_back(c.hash);
    return result;
  };
  EXPECT_EQ(hashes(1), hashes(1));
  EXPECT_NE(hashes(1), hashes(2));
}

TEST(RandomPolicy, ProposesNothingTwiceAndEndsWhenTheSpaceIsExhausted) {
  const Task task = MakeTask("relu", "4");
  RandomPolicy policy(task, Parameters{.max_rejected_draws = 300}, 1);
  std::set<uint64_t> seen;
  while (true) {
    ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> candidates, policy.Propose(8));
    if (candidates.empty()) break;
    for (const Candidate& c : candidates) EXPECT_TRUE(seen.insert(c.hash).second);
    ASSERT_LT(seen.size(), 1000u);
  }
  EXPECT_GE(seen.size(), 1u);
}

TEST(RandomPolicy, ObservedCandidatesAreNotProposedAgain) {
  const Task task = MakeTask("matmul", "4,4,4");
  RandomPolicy first(task, Parameters(), 5), second(task, Parameters(), 5);
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> earlier, first.Propose(30));
  std::vector<Observation> observations;
  std::set<uint64_t> known;
  for (const Candidate& c : earlier) {
    observations.push_back({c, true, 1e-3});
    known.insert(c.hash);
  }
  second.Observe(observations);
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> later, second.Propose(30));
  for (const Candidate& c : later) EXPECT_FALSE(known.contains(c.hash));
}

// The loop is longer than max_vectorize_size: code generation cuts it into vectors. The loop is not
// split over the cores, because the rows are enough for them.
TEST(RandomPolicy, ALongInnermostLoopIsVectorizedAlone) {
  const Task task = MakeTask("relu", "4,200");
  RandomPolicy policy(task, Parameters(), 1);
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> candidates, policy.Propose(10));
  ASSERT_GE(candidates.size(), 1u);
  for (const Candidate& c : candidates) {
    EXPECT_EQ(schedule::PrintSteps(c.steps), R"([["AN", 1, 0, 3], ["AN", 1, 1, 2]])");
  }
}

}  // namespace
}  // namespace kiln::search
