// Tests that every operator of the library gets a schedule without measuring, which computes what
// the oracle computes: on a CPU compiled, for a GPU as CUDA text emulated on a CPU.
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/step.h"
#include "search/policies/policy.h"
#include "tests/schedules/check_llvm.h"

namespace kiln::search {
namespace {

Task MakeTask(dag::DagPtr dag, std::string_view target) {
  const target::Target parsed = *target::ParseTarget(target);
  return Task(std::move(dag), parsed, target::DefaultHardware(parsed, /*host_cores=*/2), "[]");
}

// Returns the first candidate, which is the one that Kiln takes.
schedule::State BestOf(const Task& task) {
  const StatusOr<Models> models = MakeModels("heuristic", 1);
  KILN_CHECK(models.ok(), "{}", Message(models.status()));
  const StatusOr<std::unique_ptr<Policy>> policy =
      MakePolicy("heuristic", task, 17, {.models = *models, .threads = 1});
  KILN_CHECK(policy.ok(), "{}", Message(policy.status()));
  const StatusOr<std::vector<Candidate>> candidates = (*policy)->Propose(1);
  KILN_CHECK(candidates.ok(), "{}", Message(candidates.status()));
  KILN_CHECK(candidates->size() == 1, "{} candidates", candidates->size());
  StatusOr<schedule::State> state = schedule::Replay(task.dag, candidates->front().steps);
  KILN_CHECK(state.ok(), "{}", Message(state.status()));
  return *std::move(state);
}

// Part i % kParts checks case i, because Bazel gives whole tests to its shards.
constexpr size_t kParts = 8;

class Heuristic : public testing::TestWithParam<size_t> {};

TEST_P(Heuristic, CpuSchedulesComputeWhatTheOracleComputes) {
  const std::span<const dag::OpCase> cases = dag::SmallOpCases();
  for (size_t i = GetParam(); i < cases.size(); i += kParts) {
    SCOPED_TRACE(cases[i].Name());
    const Task task = MakeTask(cases[i].Build(), "llvm");
    const Workload workload = MakeWorkload(cases[i].Name(), task.dag, 3);
    EXPECT_OK(CheckByLlvm(workload, BestOf(task)));
  }
}

TEST_P(Heuristic, CudaSchedulesComputeWhatTheOracleComputes) {
  const std::span<const dag::OpCase> cases = dag::SmallOpCases();
  for (size_t i = GetParam(); i < cases.size(); i += kParts) {
    SCOPED_TRACE(cases[i].Name());
    const Task task = MakeTask(cases[i].Build(), "cuda -arch=sm_90");
    const schedule::State state = BestOf(task);
    EXPECT_OK(CheckByInterpreter(MakeWorkload(cases[i].Name(), task.dag, 3), state, /*gpu=*/true));
    ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
    const bool narrow = task.dag->op(task.dag->size() - 1).type().bytes() < 4;
    EXPECT_OK(codegen::CompareEmulated(program, 5, narrow ? 2e-2 : 1e-3));
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, Heuristic, testing::Range<size_t>(0, kParts));

}  // namespace
}  // namespace kiln::search
