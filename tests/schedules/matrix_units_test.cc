// Tiles for matrix units, as the search samples and changes them: over products and convolutions of
// 16-bit floats of any shape, the CUDA text computes what the program says, by matrix units.
//
// KILN_SEED (default 1) and KILN_CANDIDATES (default 3, of each workload) choose which and how many;
// a failure prints workload, seed and steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <span>

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

// Of 32 rows and 16 columns at least.
constexpr dag::OpCase kWarpgroupCases[] = {
    {"matmul", "64,64,64", "", ir::kFloat16},
    {"matmul", "128,256,64", "", ir::kBFloat16},
    {"matmul", "49,40,80", "relu", ir::kFloat16},
    {"dense", "64,48,64", "bias", ir::kFloat16},
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

int32_t UnitOf(const State& state) {
  const std::optional<int> s = MatrixStageOf(state);
  return s ? state.stage(*s).hints[ir::Hint::kMatrixUnit] : 0;
}

// Samples of all sketches in turn with tiles for this kind of matrix units, every second one with
// its tiles changed.
std::vector<State> MatrixStates(const Task& task, MatrixUnit unit, uint64_t seed, size_t count) {
  Parameters parameters;
  parameters.matrix_unit_prob = 1;
  parameters.warpgroup_prob = unit == MatrixUnit::kWarpgroup ? 1 : 0;
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
    if (state.ok() && UnitOf(*state) == static_cast<int32_t>(unit))
      states.push_back(*std::move(state));
  }
  return states;
}

void ExpectRight(std::span<const dag::OpCase> cases, MatrixUnit unit, std::string_view call) {
  const uint64_t seed = EnvironmentOr("KILN_SEED", 1);
  for (const dag::OpCase& c : cases) {
    SCOPED_TRACE(fmt::format("{}, seed {}", c.Name(), seed));
    const Task task = MakeTask(c);
    const std::vector<State> states =
        MatrixStates(task, unit, seed, EnvironmentOr("KILN_CANDIDATES", 3));
    EXPECT_GE(states.size(), 2u);
    for (const State& state : states) {
      SCOPED_TRACE(schedule::PrintSteps(state.steps()));
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
      ASSERT_OK(codegen::CheckCudaProgram(program, task.hardware, 90));
      ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
      EXPECT_THAT(source.text, HasSubstr(call));
      // Of 16-bit results the last bit.
      ASSERT_OK(codegen::CompareEmulated(program, 5, 1e-2));
      if (!codegen::FindNvrtc().ok()) continue;
      ASSERT_OK_AND_ASSIGN(const codegen::Cubin cubin, codegen::CompileSource(source, "sm_90"));
      // Nothing of products that wait for each other.
      EXPECT_EQ(cubin.log, "");
    }
  }
}

TEST(MatrixUnits, CandidatesComputeWhatTheProgramSays) {
  ExpectRight(kCases, MatrixUnit::kWarp, "multiply_tiles_");
}

TEST(MatrixUnits, SoDoThoseOfFourWarps) {
  ExpectRight(kWarpgroupCases, MatrixUnit::kWarpgroup, "multiply_warpgroup_");
}

// Half of the samples have swizzled tiles, padded ones the others.
TEST(MatrixUnits, TilesAreSwizzledOrPadded) {
  const Task task = MakeTask(kCases[0]);
  std::set<bool> found;
  for (const State& state : MatrixStates(task, MatrixUnit::kWarp, 3, 30)) {
    ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
    ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
    found.insert(source.text.find("swizzled<") != source.text.npos);
  }
  EXPECT_EQ(found.size(), 2u);
}

// What is sampled is what code can be made of: nothing is refused only when it is compiled.
TEST(MatrixUnits, SamplesFit) {
  for (const dag::OpCase& c : kCases) {
    SCOPED_TRACE(c.Name());
    const Task task = MakeTask(c);
    for (const MatrixUnit unit : {MatrixUnit::kWarp, MatrixUnit::kWarpgroup}) {
      for (const State& state : MatrixStates(task, unit, 7, 30)) {
        SCOPED_TRACE(schedule::PrintSteps(state.steps()));
        ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
        ASSERT_OK(codegen::GenerateCuda(program).status());
      }
    }
  }
}

TEST(MatrixUnits, OnlyOneArchitectureHasThoseOfFourWarps) {
  Parameters parameters;
  parameters.matrix_unit_prob = parameters.warpgroup_prob = 1;
  for (const auto& [target, unit] : {std::pair{"cuda -arch=sm_80", MatrixUnit::kWarp},
                                     {"cuda -arch=sm_90", MatrixUnit::kWarpgroup},
                                     {"cuda -arch=sm_100", MatrixUnit::kWarp}}) {
    const Task task(kCases[0].Build(), *target::ParseTarget(target), {}, "[]");
    Rng rng(3);
    std::set<int32_t> units;
    for (const Sketch& sketch : GenerateSketches({task, parameters})) {
      for (int i = 0; i < 20; ++i) {
        const auto state = SampleGpu(sketch, task, parameters, rng);
        if (state.ok()) units.insert(UnitOf(*state));
      }
    }
    units.erase(0);
    EXPECT_EQ(units, std::set{static_cast<int32_t>(unit)}) << target;
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
