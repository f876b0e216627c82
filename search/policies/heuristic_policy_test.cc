#include "search/policies/heuristic_policy.h"

#include <set>

#include "base/status_testing.h"
#include "compiler/dag/ops/known_workloads.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
#include "compiler/lower/lower.h"
#include "search/policies/expected_speed.h"

namespace kiln::search {
namespace {

using testing::HasSubstr;

Task MakeTask(const std::string& op, const std::string& args, std::string_view target = "llvm") {
  const auto dag = dag::BuildOp(op, args);
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  const target::Target parsed = *target::ParseTarget(target);
  return Task(*dag, parsed, target::DefaultHardware(parsed, /*host_cores=*/4), "[]");
}

std::unique_ptr<Policy> MakeHeuristic(const Task& task, uint64_t seed, int threads = 1,
                                      std::map<std::string, double> parameters = {}) {
  const auto models = MakeModels("heuristic", seed);
  KILN_CHECK(models.ok(), "{}", Message(models.status()));
  auto policy =
      MakePolicy("heuristic", task, seed,
                 {.parameters = std::move(parameters), .models = *models, .threads = threads});
  KILN_CHECK(policy.ok(), "{}", Message(policy.status()));
  return *std::move(policy);
}

std::vector<uint64_t> HashesOf(Policy& policy, int n) {
  const auto candidates = policy.Propose(n);
  KILN_CHECK(candidates.ok(), "{}", Message(candidates.status()));
  std::vector<uint64_t> hashes;
  for (const Candidate& candidate : *candidates) hashes.push_back(candidate.hash);
  return hashes;
}

TEST(HeuristicPolicy, TheSameSeedGivesTheSameHoweverManyThreads) {
  for (const char* target : {"llvm", "cuda -arch=sm_90"}) {
    const Task task = MakeTask("conv2d_nhwc", "1,14,14,32,32,3,3,1,1", target);
    const std::vector<uint64_t> first = HashesOf(*MakeHeuristic(task, 7), 10);
    EXPECT_EQ(first.size(), 10u) << target;
    EXPECT_EQ(first, HashesOf(*MakeHeuristic(task, 7), 10)) << target;
    EXPECT_EQ(first, HashesOf(*MakeHeuristic(task, 7, /*threads=*/3), 10)) << target;
  }
}

// Independent sums have as many sketches as are allowed, and each sketch has the stages of all
// sums.
TEST(HeuristicPolicy, TheStatesOfALargeComputationAreFew) {
  constexpr int kSums = 30;
  std::string text;
  for (int i = 0; i < kSums; ++i) {
    text += fmt::format("input X{0}: float32[64]\nY{0}[i: 64] = sum(k: 64) X{0}[i] * X{0}[k]\n", i);
  }
  ASSERT_OK_AND_ASSIGN(const auto dag, dag::ParseDag(text));
  const target::Target parsed = *target::ParseTarget("llvm");
  const Task task(dag, parsed, target::DefaultHardware(parsed, /*host_cores=*/4), "[]");
  const auto policy = MakeHeuristic(task, 1);
  ASSERT_OK(policy->Propose(1));
  // There are two ways of making states, with 60,000 stages each, of 30 sums and stages that tiling
  // adds.
  EXPECT_LT(policy->last_round().evaluated, 2 * 60'000 / kSums);
  EXPECT_GT(policy->last_round().evaluated, 100);
}

TEST(HeuristicPolicy, TheBestPredictedComeFirst) {
  const Task task = MakeTask("matmul", "128,128,128");
  ASSERT_OK_AND_ASSIGN(const auto candidates, MakeHeuristic(task, 1)->Propose(20));
  ASSERT_EQ(candidates.size(), 20u);
  for (size_t i = 1; i < candidates.size(); ++i)
    EXPECT_GE(candidates[i - 1].score, candidates[i].score) << i;
  EXPECT_EQ(candidates[0].rank, 1);
}

TEST(HeuristicPolicy, NothingIsProposedTwiceAndThePoolEnds) {
  const Task task = MakeTask("softmax", "4,16");
  const auto policy = MakeHeuristic(task, 1);
  std::set<uint64_t> seen;
  size_t proposed = 0;
  for (int round = 0; round < 1000; ++round) {
    const std::vector<uint64_t> hashes = HashesOf(*policy, 16);
    if (hashes.empty()) break;
    seen.insert(hashes.begin(), hashes.end());
    proposed += hashes.size();
  }
  EXPECT_GT(proposed, 1u);
  EXPECT_EQ(seen.size(), proposed);
  EXPECT_TRUE(HashesOf(*policy, 1).empty());
}

TEST(HeuristicPolicy, WhatIsKnownIsLeftOut) {
  const Task task = MakeTask("matmul", "64,64,64");
  const std::vector<uint64_t> first = HashesOf(*MakeHeuristic(task, 1), 2);
  ASSERT_EQ(first.size(), 2u);
  const auto avoiding = MakeHeuristic(task, 1);
  avoiding->Avoid({first.data(), 1});
  EXPECT_NE(HashesOf(*avoiding, 1)[0], first[0]);
  const auto observing = MakeHeuristic(task, 1);
  ASSERT_EQ(HashesOf(*observing, 1)[0], first[0]);
  Observation observation;
  observation.candidate.hash = first[1];
  observing->Observe({&observation, 1});
  EXPECT_NE(HashesOf(*observing, 1)[0], first[1]);
}

// Without rule_fillings, only draws and their descendants are left.
TEST(HeuristicPolicy, TilesByRuleAreAmongThePool) {
  const Task task = MakeTask("matmul", "512,512,512");
  const auto by_rule = [&](double fillings) {
    const auto policy = MakeHeuristic(task, 1, 1, {{"rule_fillings", fillings}});
    const auto candidates = policy->Propose(1000);
    KILN_CHECK(candidates.ok(), "{}", Message(candidates.status()));
    return std::ranges::count_if(*candidates, [](const Candidate& candidate) {
      return candidate.origin.find("by rule") != std::string::npos;
    });
  };
  EXPECT_GT(by_rule(24), 10);
  EXPECT_EQ(by_rule(0), 0);
}

TEST(HeuristicPolicy, AStoppedTaskIsCancelled) {
  Task task = MakeTask("matmul", "64,64,64");
  std::stop_source stop;
  task.stop = stop.get_token();
  const auto policy = MakeHeuristic(task, 1);
  stop.request_stop();
  EXPECT_THAT(policy->Propose(1), StatusIs(StatusCode::kCancelled, HasSubstr("stopped")));
}

TEST(HeuristicPolicy, TheKnownWorkloadsGetSchedulesThatLower) {
  for (const char* name : {"llvm", "cuda -arch=sm_90"}) {
    const target::Target target = *target::ParseTarget(name);
    for (const dag::KnownWorkload& workload : dag::ConformanceWorkloads()) {
      SCOPED_TRACE(workload.Description());
      ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag, workload.Build());
      const Task task(dag, target, target::DefaultHardware(target, 4), "[]");
      ASSERT_OK_AND_ASSIGN(const auto candidates, MakeHeuristic(task, 1)->Propose(1));
      ASSERT_EQ(candidates.size(), 1u);
      ASSERT_OK_AND_ASSIGN(const schedule::State state, schedule::Replay(dag, candidates[0].steps));
      EXPECT_OK(lower::Lower(state, {.gpu = target.is_gpu()}).status());
      EXPECT_LT(candidates[0].score, 0) << "minus the predicted seconds";
    }
  }
}

TEST(ExpectedSpeed, IsSaidWhereItWasMeasured) {
  const target::Target null = *target::ParseTarget("null");
  for (const OperatorClass kind :
       {OperatorClass::kComplexReduction, OperatorClass::kSimpleReduction,
        OperatorClass::kDirectCompute, OperatorClass::kLocationTunable}) {
    for (const char* const name : {"llvm", "cuda"}) {
      const auto expected = ExpectedSpeedOf(*target::ParseTarget(name), kind);
      ASSERT_TRUE(expected.has_value());
      EXPECT_GT(expected->low, 0);
      EXPECT_LE(expected->low, expected->middle);
      EXPECT_LE(expected->middle, 1.1);
      EXPECT_GT(expected->workloads, 0);
      EXPECT_GT(expected->trials, 0);
    }
    EXPECT_FALSE(ExpectedSpeedOf(null, kind).has_value());
  }
}

}  // namespace
}  // namespace kiln::search
