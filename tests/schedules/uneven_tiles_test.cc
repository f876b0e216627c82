// Tests tiles that do not divide their axes, over all operators that are tiled. As the search
// samples and changes them, the programs compute what the DAG says: compiled by LLVM, lowered for a
// GPU in the interpreter, and as CUDA text.
//
// KILN_SEED (default 1) and KILN_CANDIDATES (default 8, of each operator) choose which and how
// many. A failure prints operator, seed and steps.
#include "search/space/uneven_tiles.h"

#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/checks.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/steps.h"
#include "search/evolution/mutation.h"
#include "search/evolution/rebuild.h"
#include "search/evolution/tile_moves.h"
#include "search/sampling/sample.h"
#include "tests/schedules/check_llvm.h"
#include "tests/schedules/environment.h"

namespace kiln::search {
namespace {

using schedule::State;

Task MakeTask(const dag::OpCase& c, bool gpu) {
  if (gpu) {
    // Warps are small, so that tiny workloads use several warps and blocks.
    return Task(c.Build(), *target::ParseTarget("cuda -thread_warp_size=4"), {}, "[]");
  }
  target::HardwareParams hardware;
  hardware.num_cores = 2;
  return Task(c.Build(), target::Target{}, hardware, "[]");
}

bool IsUneven(const State& state, bool gpu) {
  for (const Tiles& tiles : TilesOf(state.steps())) {
    if (tiles.covered() != tiles.extent &&
        MayBeUneven(state.steps(), static_cast<size_t>(tiles.step), gpu, Parameters()))
      return true;
  }
  return false;
}

// Returns samples of all sketches in turn, every second one with its tiles changed.
std::vector<State> UnevenStates(const Task& task, uint64_t seed, size_t count) {
  const bool gpu = task.target.is_gpu();
  const Parameters parameters;
  const std::vector<Sketch> sketches = GenerateSketches({task, parameters});
  Rng rng(seed);
  std::vector<State> states;
  for (size_t draw = 0; draw < 60 * sketches.size() && states.size() < count; ++draw) {
    const Sketch& sketch = sketches[draw % sketches.size()];
    StatusOr<State> state = Sample(sketch, task, parameters, rng);
    if (state.ok() && states.size() % 2 == 1) {
      const auto mutation =
          MutateAs(MutationKind::kTileSize, task, parameters, {state->steps(), sketch.steps}, rng);
      Drop why = Drop::kIllegal;
      if (mutation.ok()) state = Rebuild(task, mutation->steps, why);
    }
    if (state.ok() && IsUneven(*state, gpu)) states.push_back(*std::move(state));
  }
  return states;
}

// Reductions that are long enough to be fetched tile by tile, ahead, and to be split.
constexpr dag::OpCase kOddCases[] = {
    {"matmul", "13,17,19", "relu"},
    {"matmul", "9,10,37"},
    {"dense", "5,13,50", "bias"},
    {"batch_matmul", "2,7,9,13"},
    {"conv2d_nhwc", "1,7,5,13,14,3,3,1,1", "bias,relu"},
    {"conv2d_nchw", "1,7,13,5,17,3,3,2,1", "bias"},
    {"depthwise_conv2d_nhwc", "1,7,9,13,3,3,1,1", "relu"},
};

std::vector<dag::OpCase> AllCases() {
  std::vector<dag::OpCase> cases(std::begin(kOddCases), std::end(kOddCases));
  cases.insert(cases.end(), dag::SmallOpCases().begin(), dag::SmallOpCases().end());
  return cases;
}

// Part i % kParts checks case i, because Bazel gives whole tests to its shards.
constexpr size_t kParts = 4;

class UnevenTiles : public testing::TestWithParam<size_t> {};

TEST_P(UnevenTiles, CpuCandidatesComputeWhatTheOracleComputes) {
  const uint64_t seed = EnvironmentOr("KILN_SEED", 1);
  const std::vector<dag::OpCase> cases = AllCases();
  size_t checked = 0;
  for (size_t i = GetParam(); i < cases.size(); i += kParts) {
    SCOPED_TRACE(fmt::format("{}, seed {}", cases[i].Name(), seed));
    const Task task = MakeTask(cases[i], false);
    const Workload workload = MakeWorkload(cases[i].Name(), task.dag, 3);
    for (const State& state : UnevenStates(task, seed, EnvironmentOr("KILN_CANDIDATES", 8))) {
      ++checked;
      ASSERT_OK(CheckByLlvm(workload, state));
    }
  }
  EXPECT_GT(checked, 10u);
}

TEST_P(UnevenTiles, GpuCandidatesComputeWhatTheOracleComputes) {
  const uint64_t seed = EnvironmentOr("KILN_SEED", 1);
  const std::vector<dag::OpCase> cases = AllCases();
  size_t checked = 0;
  for (size_t i = GetParam(); i < cases.size(); i += kParts) {
    SCOPED_TRACE(fmt::format("{}, seed {}", cases[i].Name(), seed));
    const Task task = MakeTask(cases[i], true);
    const Workload workload = MakeWorkload(cases[i].Name(), task.dag, 3);
    for (const State& state : UnevenStates(task, seed, EnvironmentOr("KILN_CANDIDATES", 8))) {
      ++checked;
      ASSERT_OK(CheckByInterpreter(workload, state, /*gpu=*/true));
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
      ASSERT_OK(codegen::CheckCudaProgram(program, task.hardware));
      ASSERT_OK(codegen::GenerateCuda(program).status());
    }
  }
  EXPECT_GT(checked, 10u);
}

INSTANTIATE_TEST_SUITE_P(Parts, UnevenTiles, testing::Range<size_t>(0, kParts));

TEST(UnevenTilesInCuda, ComputeTheSame) {
  const uint64_t seed = EnvironmentOr("KILN_SEED", 1);
  for (const dag::OpCase& c : kOddCases) {
    SCOPED_TRACE(fmt::format("{}, seed {}", c.Name(), seed));
    const Task task = MakeTask(c, true);
    const Workload workload = MakeWorkload(c.Name(), task.dag, 3);
    const std::vector<State> states = UnevenStates(task, seed, 16);
    ASSERT_GT(states.size(), 10u);
    for (size_t i = 0; i < states.size(); ++i) {
      ASSERT_OK(CheckByInterpreter(workload, states[i], /*gpu=*/true));
      // Only every eighth is emulated, because g++ is slow.
      if (i % 8 != 0) continue;
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(states[i], {.gpu = true}));
      const Status status = codegen::CompareEmulated(program, 5, 1e-4);
      ASSERT_TRUE(status.ok()) << schedule::PrintSteps(states[i].steps()) << "\n" << status;
      if (i > 0 || !codegen::FindNvrtc().ok()) continue;
      ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
      EXPECT_OK(codegen::CompileCubin(source.text, "sm_90").status());
    }
  }
}

}  // namespace
}  // namespace kiln::search
