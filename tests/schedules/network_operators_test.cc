// Tests that every operator of networks can be tuned: the search's proposals for it, on a CPU and
// on a GPU, compute what the oracle computes.
//
// KILN_CANDIDATES (default 2) is the number of proposals for each operator.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/step.h"
#include "graph/op_cases_testing.h"
#include "search/policies/policy.h"
#include "tests/schedules/check_llvm.h"

namespace kiln::search {
namespace {

int NumCandidates() {
  const char* text = std::getenv("KILN_CANDIDATES");
  return text == nullptr ? 2 : std::atoi(text);
}

Task MakeTask(dag::DagPtr dag, std::string_view target) {
  target::HardwareParams hardware;
  hardware.num_cores = 2;
  return Task(std::move(dag), *target::ParseTarget(target),
              target == "llvm" ? hardware : target::HardwareParams(), "[]");
}

std::vector<schedule::State> Proposals(const Task& task) {
  StatusOr<std::unique_ptr<Policy>> policy = MakePolicy("sketch.random", task, 17);
  KILN_CHECK(policy.ok(), "{}", Message(policy.status()));
  StatusOr<std::vector<Candidate>> candidates = (*policy)->Propose(NumCandidates());
  KILN_CHECK(candidates.ok(), "{}", Message(candidates.status()));
  std::vector<schedule::State> states;
  for (const Candidate& candidate : *candidates) {
    StatusOr<schedule::State> state = schedule::Replay(task.dag, candidate.steps);
    KILN_CHECK(state.ok(), "{}", Message(state.status()));
    states.push_back(*std::move(state));
  }
  return states;
}

// Part i % kParts checks case i, because Bazel gives whole tests to its shards.
constexpr size_t kParts = 8;

class NetworkOperators : public testing::TestWithParam<size_t> {};

TEST_P(NetworkOperators, CpuCandidatesComputeWhatTheOracleComputes) {
  const std::vector<graph::OpCase>& cases = graph::SmallOpCases();
  for (size_t i = GetParam(); i < cases.size(); i += kParts) {
    SCOPED_TRACE(cases[i].Name());
    const Task task = MakeTask(cases[i].Write(), "llvm");
    const Workload workload = MakeWorkload(cases[i].Name(), task.dag, 3);
    const std::vector<schedule::State> states = Proposals(task);
    EXPECT_GT(states.size(), 0u);
    for (const schedule::State& state : states) EXPECT_OK(CheckByLlvm(workload, state));
  }
}

TEST_P(NetworkOperators, GpuCandidatesComputeWhatTheOracleComputes) {
  const std::vector<graph::OpCase>& cases = graph::SmallOpCases();
  for (size_t i = GetParam(); i < cases.size(); i += kParts) {
    SCOPED_TRACE(cases[i].Name());
    // Warps are small, so that tiny workloads use several warps and blocks.
    const Task task = MakeTask(cases[i].Write(), "cuda -thread_warp_size=4");
    const Workload workload = MakeWorkload(cases[i].Name(), task.dag, 3);
    const std::vector<schedule::State> states = Proposals(task);
    EXPECT_GT(states.size(), 0u);
    for (const schedule::State& state : states) {
      EXPECT_OK(CheckByInterpreter(workload, state, /*gpu=*/true));
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
      EXPECT_OK(codegen::GenerateCuda(program).status());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, NetworkOperators, testing::Range<size_t>(0, kParts));

}  // namespace
}  // namespace kiln::search
