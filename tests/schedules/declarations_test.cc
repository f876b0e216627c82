// Tests the computations of examples/te, which show what the text form can express. Any schedule of
// them computes what the oracle computes, by LLVM, in the interpreter and as CUDA text on a CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "base/numbers/rng.h"
#include "base/status_testing.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/dag/evaluate.h"
#include "compiler/dag/text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/random_schedule_testing.h"
#include "search/policies/policy.h"
#include "tests/schedules/check_llvm.h"

namespace kiln {
namespace {

constexpr int kRandomSchedules = 16, kProposals = 3;
constexpr double kTolerance = 1e-4;

std::vector<std::string> Files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator("examples/te"))
    files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

dag::DagPtr ReadDag(const std::string& path) {
  const auto text = ReadFile(path, 1 << 20);
  KILN_CHECK(text.ok(), "{}", Message(text.status()));
  auto dag = dag::ParseDag(*text);
  KILN_CHECK(dag.ok(), "{}: {}", path, Message(dag.status()));
  return *std::move(dag);
}

// Inputs are uniform, because floats cannot hold the products of many whole numbers exactly.
Workload WorkloadOf(const std::string& path) {
  Workload workload{path, ReadDag(path), {}, {}};
  workload.inputs = dag::RandomInputs(*workload.dag, 3, ir::RandomKind::kUniform);
  auto outputs = dag::Evaluate(*workload.dag, workload.inputs, {.wide_accumulation = true});
  KILN_CHECK(outputs.ok(), "{}: {}", path, Message(outputs.status()));
  workload.outputs = *std::move(outputs);
  return workload;
}

std::vector<schedule::State> Proposals(const dag::DagPtr& dag, std::string_view target) {
  const search::Task task(dag, *target::ParseTarget(target), {}, "[]");
  const auto policy = search::MakePolicy("sketch.random", task, 5);
  KILN_CHECK(policy.ok(), "{}", Message(policy.status()));
  const auto candidates = (*policy)->Propose(kProposals);
  KILN_CHECK(candidates.ok(), "{}", Message(candidates.status()));
  std::vector<schedule::State> states;
  for (const search::Candidate& candidate : *candidates) {
    auto state = schedule::Replay(dag, candidate.steps);
    KILN_CHECK(state.ok(), "{}", Message(state.status()));
    states.push_back(*std::move(state));
  }
  return states;
}

class Declarations : public testing::TestWithParam<std::string> {};

TEST_P(Declarations, PrintAndParse) {
  const dag::DagPtr dag = ReadDag(GetParam());
  const std::string text = dag::PrintDag(*dag);
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr again, dag::ParseDag(text));
  EXPECT_TRUE(dag::Equal(*dag, *again)) << text;
  EXPECT_EQ(dag::PrintDag(*again), text);
}

TEST_P(Declarations, RandomSchedulesComputeThem) {
  const Workload workload = WorkloadOf(GetParam());
  for (int i = 0; i < kRandomSchedules; ++i) {
    const uint64_t seed = SplitSeed(11, static_cast<uint64_t>(i));
    const schedule::State state = schedule::RandomSchedule(workload.dag, seed, 2 + i % 12);
    SCOPED_TRACE(testing::Message() << "schedule " << i);
    ASSERT_OK(CheckByLlvm(workload, state));
    if (i % 4 == 0) {
      ASSERT_OK(CheckByInterpreter(workload, state));
    }
  }
}

TEST_P(Declarations, ProposalsForCpusComputeThem) {
  const Workload workload = WorkloadOf(GetParam());
  for (const schedule::State& state : Proposals(workload.dag, "llvm"))
    ASSERT_OK(CheckByLlvm(workload, state));
}

TEST_P(Declarations, ProposalsForGpusComputeThem) {
  const Workload workload = WorkloadOf(GetParam());
  for (const schedule::State& state : Proposals(workload.dag, "cuda -arch=sm_90")) {
    ASSERT_OK(CheckByInterpreter(workload, state, /*gpu=*/true));
    ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
    ASSERT_OK(codegen::CompareEmulated(program, 9, kTolerance));
  }
}

INSTANTIATE_TEST_SUITE_P(Examples, Declarations, testing::ValuesIn(Files()), [](const auto& info) {
  return std::filesystem::path(info.param).stem().string();
});

}  // namespace
}  // namespace kiln
