// Tiles for matrix units, as the search samples and changes them: over products and convolutions of
// 16-bit floats of any shape, the CUDA text computes what the program says, by matrix units.
//
// KILN_SEED (default 1) and KILN_CANDIDATES (default 3, of each workload) choose which and how many;
// a failure prints workload, seed and steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

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
#include "search/sampling/sample_gpu.h"
#include "search/space/matrix_product.h"

namespace kiln::search {
namespace {

using schedule::State;
using testing::HasSubstr;

uint64_t EnvironmentOr(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

// Rows, columns and depths that divide and that do not; strides, windows, batches, layouts.
constexpr dag::OpCase kCases[] = {
    {"matmul", "64,64,64", "", ir::kFloat16},
    {"matmul", "64,64,64", "", ir::kBFloat16},
    {"matmul", "49,40,80", "relu", ir::kFloat16},
    {"dense", "16,48,64", "bias", ir::kFloat16},
    {"dense", "33,100,72", "", ir::kFloat16},
    {"batch_matmul", "3,32,32,32", "", ir::kFloat16},
    {"conv2d_nhwc", "1,14,14,16,32,3,3,1,1", "bias,relu", ir::kFloat16},
    {"conv2d_nhwc", "1,7,7,24,16,3,3,1,1", "", ir::kFloat16},
    {"conv2d_nhwc", "2,15,15,16,16,3,3,2,1", "relu", ir::kFloat16},
    {"conv2d_nhwc", "1,16,16,32,24,1,1,2,0", "", ir::kFloat16},
    {"conv1d_nwc", "1,64,32,32,3,1,1", "", ir::kFloat16},
};

Task MakeTask(const dag::OpCase& c) {
  return Task(c.Build(), *target::ParseTarget("cuda -arch=sm_90"), {}, "[]");
}

// Samples of all sketches in turn with tiles for matrix units, every second one with its tiles
// changed.
std::vector<State> MatrixStates(const Task& task, uint64_t seed, size_t count) {
  Parameters parameters;
  parameters.matrix_unit_prob = 1;
  const std::vector<Sketch> sketches = GenerateSketches({task, parameters});
  Rng rng(seed);
  std::vector<State> states;
  for (size_t draw = 0; draw < 200 * sketches.size() && states.size() < count; ++draw) {
    const Sketch& sketch = sketches[draw % sketches.size()];
    StatusOr<State> state = SampleGpu(sketch, task, parameters, rng);
    if (state.ok() && states.size() % 2 == 1) {
      const auto mutation =
          MutateAs(MutationKind::kTileSize, task, parameters, {state->steps(), sketch.steps}, rng);
      Drop why = Drop::kIllegal;
      if (!mutation.ok()) continue;
      state = Rebuild(task, mutation->steps, why);
    }
    if (state.ok() && MatrixStageOf(*state)) states.push_back(*std::move(state));
  }
  return states;
}

TEST(MatrixUnits, CandidatesComputeWhatTheProgramSays) {
  const uint64_t seed = EnvironmentOr("KILN_SEED", 1);
  for (const dag::OpCase& c : kCases) {
    SCOPED_TRACE(fmt::format("{}, seed {}", c.Name(), seed));
    const Task task = MakeTask(c);
    const std::vector<State> states = MatrixStates(task, seed, EnvironmentOr("KILN_CANDIDATES", 3));
    EXPECT_GE(states.size(), 2u);
    for (const State& state : states) {
      SCOPED_TRACE(schedule::PrintSteps(state.steps()));
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
      ASSERT_OK(codegen::CheckCudaProgram(program, task.hardware, 90));
      ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
      EXPECT_THAT(source.text, HasSubstr("multiply_tiles_"));
      // Of 16-bit results the last bit.
      ASSERT_OK(codegen::CompareEmulated(program, 5, 1e-2));
      if (!codegen::FindNvrtc().ok()) continue;
      EXPECT_OK(codegen::CompileCubin(source.text, "sm_90").status());
    }
  }
}

// What is sampled is what code can be made of: nothing is refused only when it is compiled.
TEST(MatrixUnits, SamplesFit) {
  for (const dag::OpCase& c : kCases) {
    SCOPED_TRACE(c.Name());
    const Task task = MakeTask(c);
    for (const State& state : MatrixStates(task, 7, 30)) {
      SCOPED_TRACE(schedule::PrintSteps(state.steps()));
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
      ASSERT_OK(codegen::GenerateCuda(program).status());
    }
  }
}

TEST(MatrixUnits, OnlyWhereThereAreSome) {
  Parameters parameters;
  parameters.matrix_unit_prob = 1;
  for (const auto& [target, dtype] :
       {std::pair{"cuda -arch=sm_75", ir::kFloat16}, {"cuda -arch=sm_90", ir::kFloat32}}) {
    const Task task(dag::OpCase{"matmul", "64,64,64", "", dtype}.Build(),
                    *target::ParseTarget(target), {}, "[]");
    const Sketch sketch = GenerateSketches({task, parameters})[0];
    Rng rng(3);
    for (int i = 0; i < 20; ++i) {
      const auto state = SampleGpu(sketch, task, parameters, rng);
      if (!state.ok()) continue;
      EXPECT_FALSE(MatrixStageOf(*state).has_value());
    }
  }
}

}  // namespace
}  // namespace kiln::search
