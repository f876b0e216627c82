#include "search/random_policy.h"

#include <gtest/gtest.h>

#include <set>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/lower/lower.h"
#include "tests/schedules/check_program.h"

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

TEST(RandomPolicy, CandidatesComputeWhatTheDagSays) {
  const struct {
    const char *op, *args, *epilogue;
  } cases[] = {{"matmul", "12,8,6", "relu"},
               {"matmul", "2,3,64", ""},
               {"conv2d_nchw", "1,7,7,4,3,3,3,1,1", "bias,relu"},
               {"conv2d_nhwc", "1,6,6,8,3,3,3,2,1", ""},
               {"depthwise_conv2d_nchw", "1,5,5,4,3,3,1,1", "relu"},
               {"max_pool2d_nchw", "1,7,7,3,3,3,2,1", ""},
               {"softmax", "4,14", ""},
               {"sum", "4,64,axis=1", ""}};
  for (const auto& c : cases) {
    const Task task = MakeTask(c.op, c.args, c.epilogue);
    const Workload workload = MakeWorkload(fmt::format("{} {} {}", c.op, c.args, c.epilogue), task.dag, 3);
    RandomPolicy policy(task, Parameters(), 17);
    ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> candidates, policy.Propose(60));
    ASSERT_GT(candidates.size(), 10u) << workload.name;
    for (const Candidate& candidate : candidates) {
      ASSERT_OK_AND_ASSIGN(const schedule::State state, schedule::Replay(task.dag, candidate.steps));
      const Status status = CheckByInterpreter(workload, state);
      ASSERT_TRUE(status.ok()) << status;
    }
  }
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
  RandomPolicy policy(task, Parameters{.max_futile_samples = 300}, 1);
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

TEST(Policy, UnknownNamesAreRefused) {
  const Task task = MakeTask("relu", "4");
  EXPECT_THAT(MakePolicy("sketch.magic", task, 1),
              StatusIs(StatusCode::kInvalidArgument, testing::HasSubstr("expected one of sketch.random")));
  EXPECT_THAT(MakePolicy("sketch.random", task, 1, {{"wings", 2}}),
              StatusIs(StatusCode::kInvalidArgument, testing::HasSubstr("unknown search parameter 'wings'")));
}

}  // namespace
}  // namespace kiln::search
