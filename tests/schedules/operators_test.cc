// Tests that every operator of the library can be tuned: the search's proposals for it, on a CPU
// and on a GPU, compute what the oracle computes.
//
// KILN_CANDIDATES (default 3) is the number of proposals for each operator.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/step.h"
#include "search/policies/policy.h"
#include "tests/schedules/check_llvm.h"

namespace kiln::search {
namespace {

int NumCandidates() {
  const char* text = std::getenv("KILN_CANDIDATES");
  return text == nullptr ? 3 : std::atoi(text);
}

Task MakeTask(dag::DagPtr dag, std::string_view target) {
  target::HardwareParams hardware;
  hardware.num_cores = 2;
  const target::Target parsed = *target::ParseTarget(target);
  return Task(std::move(dag), parsed, target == "llvm" ? hardware : target::HardwareParams(), "[]");
}

// Warps are small, so that tiny workloads use several warps and blocks.
constexpr std::string_view kGpu = "cuda -thread_warp_size=4";

std::vector<schedule::State> Proposals(const Task& task, int n) {
  StatusOr<std::unique_ptr<Policy>> policy = MakePolicy("sketch.random", task, 17);
  KILN_CHECK(policy.ok(), "{}", Message(policy.status()));
  StatusOr<std::vector<Candidate>> candidates = (*policy)->Propose(n);
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

class Operators : public testing::TestWithParam<size_t> {};

TEST_P(Operators, CpuCandidatesComputeWhatTheOracleComputes) {
  const std::span<const dag::OpCase> cases = dag::SmallOpCases();
  for (size_t i = GetParam(); i < cases.size(); i += kParts) {
    SCOPED_TRACE(cases[i].Name());
    const Task task = MakeTask(cases[i].Build(), "llvm");
    const Workload workload = MakeWorkload(cases[i].Name(), task.dag, 3);
    const std::vector<schedule::State> states = Proposals(task, NumCandidates());
    EXPECT_GT(states.size(), 0u);
    for (const schedule::State& state : states) EXPECT_OK(CheckByLlvm(workload, state));
  }
}

TEST_P(Operators, GpuCandidatesComputeWhatTheOracleComputes) {
  const std::span<const dag::OpCase> cases = dag::SmallOpCases();
  for (size_t i = GetParam(); i < cases.size(); i += kParts) {
    SCOPED_TRACE(cases[i].Name());
    const Task task = MakeTask(cases[i].Build(), kGpu);
    const Workload workload = MakeWorkload(cases[i].Name(), task.dag, 3);
    const std::vector<schedule::State> states = Proposals(task, NumCandidates());
    EXPECT_GT(states.size(), 0u);
    for (const schedule::State& state : states) {
      EXPECT_OK(CheckByInterpreter(workload, state, /*gpu=*/true));
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
      EXPECT_OK(codegen::GenerateCuda(program).status());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, Operators, testing::Range<size_t>(0, kParts));

// Tests indices that are read from a tensor, or are quotients and remainders, in CUDA's arithmetic.
TEST(OperatorsInCuda, OddIndices) {
  const std::pair<const char*, const char*> cases[] = {
      {"gather", "11,3,indices=5"},
      {"reshape", "3,4,5,to=6,to=-1"},
      {"concat", "3,2,with=5,with=1"},
      {"resize_nearest_nchw", "1,3,4,2,7,5"},
      {"resize_bilinear_nhwc", "1,3,4,2,7,5"},
      {"adaptive_avg_pool2d_nchw", "1,5,8,3,3,3"},
      {"conv2d_transpose_nhwc", "1,3,4,3,2,3,3,2,1,output_pad=1"},
      {"conv2d_transpose_nhwc", "1,3,4,3,2,3,3,2,1,output_pad=1,dilate=1"},
      {"argmin", "3,5,4,axis=0,axis=2"},
  };
  for (const auto& [op, args] : cases) {
    SCOPED_TRACE(fmt::format("{} {}", op, args));
    ASSERT_OK_AND_ASSIGN(dag::DagPtr dag, dag::BuildOp(op, args));
    const Task task = MakeTask(dag, kGpu);
    for (const schedule::State& state : Proposals(task, 1)) {
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
      EXPECT_OK(codegen::CompareEmulated(program, 5, 1e-4));
    }
  }
}

// The cases are large enough for vectors, tiles in shared memory, and rows and columns that many
// threads reduce. Others have odd extents, at which vectors end early.
TEST(OperatorsInCuda, MovesAndReductions) {
  const struct {
    const char *op, *args;
    std::vector<std::string> epilogue = {};
    ir::Type type = ir::kFloat32;
  } cases[] = {
      {"relu", "1023,7"},
      {"add", "12,40,33,broadcast=0"},
      {"relu", "64,96", {}, ir::kFloat16},
      {"pad", "3,21,20"},
      {"transpose", "64,96"},
      {"transpose", "71,65"},
      {"transpose", "96,64", {}, ir::kFloat16},
      {"transpose", "2,24,6,16,axis=0,axis=2,axis=3,axis=1", {"bias", "relu"}},
      {"sum", "96,64,axis=0"},
      {"sum", "96,51,axis=0"},
      {"max", "3,64,40,axis=0,axis=1"},
      {"mean", "6,4,16,16,axis=0,axis=2,axis=3"},
      {"sum", "3,4096,axis=1"},
      {"sum", "4099"},
      {"sum", "37,60,axis=1"},
      {"argmax", "21,100,axis=1"},
      {"softmax", "19,128"},
      {"softmax", "3,7,99"},
      {"layer_norm", "13,64"},
      {"max_pool2d_nhwc", "1,11,9,16,3,3,2,1"},
      {"avg_pool2d_nchw", "1,12,12,4,3,3,1,1"},
      {"global_avg_pool2d_nhwc", "2,8,8,32"},
      {"sum", "67,64,axis=0"},
      {"batch_norm", "3,8,5,8"},
      {"resize_bilinear_nchw", "1,8,8,3,16,16"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(fmt::format("{} {}", c.op, c.args));
    ASSERT_OK_AND_ASSIGN(dag::DagPtr dag,
                         dag::BuildOp(c.op, c.args, {.dtype = c.type, .epilogue = c.epilogue}));
    const Task task = MakeTask(dag, "cuda -arch=sm_90");
    for (const schedule::State& state : Proposals(task, 4)) {
      SCOPED_TRACE(schedule::PrintSteps(state.steps()));
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
      ASSERT_OK(codegen::CompareEmulated(program, 5, c.type == ir::kFloat16 ? 1e-2 : 1e-4));
    }
  }
}

}  // namespace
}  // namespace kiln::search
