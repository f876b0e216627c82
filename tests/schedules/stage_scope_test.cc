// Tests that a stage's memory scope follows from its schedule, whatever its operator is called.
// Operators with the names of caches that steps make are scheduled, lowered and run like any
// others.
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/dag/text.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/step.h"
#include "search/policies/random_policy.h"
#include "tests/schedules/check_llvm.h"
#include "tests/schedules/check_program.h"

namespace kiln {
namespace {

constexpr const char* kCpu = "llvm";
// Warps are small, so that tiny workloads use several of them.
constexpr const char* kGpu = "cuda -arch=sm_90 -thread_warp_size=4";

struct Names {
  const char *product, *scaled, *sums;
};
constexpr Names kCacheLike = {"x.shared", "x.local", "y.shared"}, kOthers = {"p", "q", "r"};

// Returns a product whose reader is inlined, tiled, or computed in the threads of another stage.
dag::DagPtr Make(const Names& names) {
  const auto dag = dag::ParseDag(fmt::format(R"(
      input A: float32[12, 16]
      input B: float32[16, 8]
      {0}[i: 12, j: 8] = sum(k: 16) A[i, k] * B[k, j]
      {1}[i: 12, j: 8] = max({0}[i, j], 0.0) * 2.0
      {2}[i: 12] = sum(j: 8) {1}[i, j] * {0}[i, j]
      z[i: 12] = {2}[i] + 1.0)",
                                             names.product, names.scaled, names.sums));
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  return *dag;
}

schedule::State StateOf(const Names& names, std::string_view steps_json) {
  const auto steps = schedule::ParseSteps(steps_json);
  KILN_CHECK(steps.ok(), "{}", Message(steps.status()));
  const auto state = schedule::Replay(Make(names), *steps);
  KILN_CHECK(state.ok(), "{}", Message(state.status()));
  return *state;
}

std::vector<search::Candidate> Draw(const Names& names, const char* target, int n) {
  const search::Task task(Make(names), *target::ParseTarget(target), {}, "[]");
  search::RandomPolicy policy(task, search::Parameters(), 17);
  const auto candidates = policy.Propose(n);
  KILN_CHECK(candidates.ok(), "{}", Message(candidates.status()));
  return *candidates;
}

// 4 blocks of 3 threads; each thread computes its own product.
constexpr std::string_view kInThreads =
    R"([["SP", 5, 0, 12, [3], 1], ["AN", 5, 0, 5], ["AN", 5, 1, 6], ["CA", 4, 5, 1],)"
    R"( ["CI", 3], ["CA", 2, 4, 0]])";

TEST(StageScope, ANameAsksForNoSharedMemory) {
  const schedule::State state = StateOf(kCacheLike, kInThreads);
  ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
  EXPECT_TRUE(std::ranges::none_of(program.buffers, [](const ir::Buffer& buffer) {
    return buffer.scope == ir::Scope::kShared;
  })) << ir::ProgramText(program);
  EXPECT_OK(CheckByInterpreter(MakeWorkload("names", Make(kCacheLike), 3), state, /*gpu=*/true));
  ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
  EXPECT_EQ(source.text.find("__shared__"), std::string::npos) << source.text;
}

TEST(StageScope, AStepAsksForSharedMemory) {
  for (const Names& names : {kCacheLike, kOthers}) {
    const schedule::State state = StateOf(
        names, R"([["SP", 5, 0, 12, [3], 1], ["AN", 5, 0, 5], ["AN", 5, 1, 6], ["CA", 4, 5, 1],)"
               R"( ["CHR", 0, "shared", [2]], ["CA", 1, 6, 1], ["CHR", 2, "local", [3]]])");
    EXPECT_TRUE(state.stage(1).asks_for_shared());
    EXPECT_FALSE(state.stage(3).asks_for_shared());
    EXPECT_FALSE(state.stage(4).asks_for_shared());
  }
}

TEST(StageScope, FreshLoopsStayInTheirMemory) {
  const schedule::State state =
      StateOf(kOthers, R"([["CHR", 0, "shared", [2]], ["CHW", 1, "local"]])");
  EXPECT_EQ(state.stage(1).op->name(), "A.shared.local");
  EXPECT_FALSE(state.stage(1).asks_for_shared());
  EXPECT_EQ(state.stage(2).op->name(), "A.shared");
  EXPECT_TRUE(state.stage(2).asks_for_shared());
}

TEST(StageScope, SearchesOnACpuAreThoseOfAnyName) {
  const Workload workload = MakeWorkload("names", Make(kCacheLike), 3);
  const auto candidates = Draw(kCacheLike, kCpu, 12), others = Draw(kOthers, kCpu, 12);
  ASSERT_EQ(candidates.size(), others.size());
  for (size_t i = 0; i < candidates.size(); ++i) {
    EXPECT_EQ(schedule::PrintSteps(candidates[i].steps), schedule::PrintSteps(others[i].steps));
    ASSERT_OK_AND_ASSIGN(const schedule::State state,
                         schedule::Replay(workload.dag, candidates[i].steps));
    EXPECT_OK(CheckByLlvm(workload, state));
  }
}

TEST(StageScope, SearchesOnAGpuAreThoseOfAnyName) {
  // Each compiles for a second.
  constexpr size_t kEmulated = 4;
  const Workload workload = MakeWorkload("names", Make(kCacheLike), 3);
  const auto candidates = Draw(kCacheLike, kGpu, 40), others = Draw(kOthers, kGpu, 40);
  ASSERT_EQ(candidates.size(), others.size());
  ASSERT_GT(candidates.size(), kEmulated);
  for (size_t i = 0; i < candidates.size(); ++i) {
    EXPECT_EQ(schedule::PrintSteps(candidates[i].steps), schedule::PrintSteps(others[i].steps));
    ASSERT_OK_AND_ASSIGN(const schedule::State state,
                         schedule::Replay(workload.dag, candidates[i].steps));
    EXPECT_OK(CheckByInterpreter(workload, state, /*gpu=*/true));
    if (i >= kEmulated) continue;
    ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
    EXPECT_OK(codegen::CompareEmulated(program, 9, 1e-4));
  }
}

}  // namespace
}  // namespace kiln
