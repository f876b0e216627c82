// Tests tiles for matrix units, as the search samples and changes them. Over products and
// convolutions of any shape, of all types that have matrix units, the CUDA text computes what the
// program says, by matrix units.
//
// KILN_SEED (default 1) and KILN_CANDIDATES (default 3, of each workload) choose which and how
// many. A failure prints workload, seed and steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
#include "search/sampling/sample_gpu.h"
#include "search/space/matrix_product.h"
#include "search/space/matrix_tile.h"
#include "tests/schedules/environment.h"
#include "tests/schedules/matrix_candidates.h"

namespace kiln::search {
namespace {

using ir::MatrixUnitScope;
using schedule::State;
using testing::HasSubstr;

// The tile divides rows, columns and depths of some cases and not of others. There are strides,
// windows, batches and layouts.
constexpr dag::OpCase kCases[] = {
    {"matmul", "64,64,64", "", ir::kFloat16},
    {"matmul", "64,64,64", "", ir::kBFloat16},
    {"matmul", "49,40,80", "relu", ir::kFloat16},
    {"matmul", "32,32,12", "", ir::kFloat16},
    {"dense", "16,48,64", "bias", ir::kFloat16},
    {"dense", "33,100,72", "", ir::kFloat16},
    {"batch_matmul", "3,32,32,32", "", ir::kFloat16},
    {"conv2d_nhwc", "1,14,14,16,32,3,3,1,1", "bias,relu", ir::kFloat16},
    {"conv2d_nhwc", "1,7,7,24,16,3,3,1,1", "", ir::kFloat16},
    {"conv2d_nhwc", "2,15,15,16,16,3,3,2,1", "relu", ir::kFloat16},
    {"conv2d_nhwc", "1,16,16,32,24,1,1,2,0", "", ir::kFloat16},
    {"conv1d_nwc", "1,64,32,32,3,1,1", "", ir::kFloat16},
    {"conv2d_nhwc", "1,14,14,64,64,3,3,1,1,groups=4", "", ir::kFloat16},
    {"conv2d_nhwc", "1,10,10,64,32,3,3,1,1,groups=2", "relu", ir::kBFloat16},
    {"conv2d_transpose_nhwc", "1,8,8,32,64,4,4,2,1", "", ir::kFloat16},
    {"matmul", "64,64,64", "", ir::kFloat32},
    {"matmul", "49,40,147", "relu", ir::kFloat32},
    {"dense", "33,100,72", "bias", ir::kFloat32},
    {"batch_matmul", "2,32,24,40,transpose_a=1", "", ir::kFloat32},
    {"batch_matmul", "2,32,24,40,transpose_a=1,transpose_b=1", "", ir::kFloat32},
    {"conv2d_nhwc", "1,14,14,16,32,3,3,1,1", "bias,relu", ir::kFloat32},
    {"conv2d_nhwc", "1,14,14,32,32,3,3,1,1,output_first=1", "bias,relu", ir::kFloat32},
    {"conv2d_nhwc", "2,9,9,32,32,3,3,2,1,output_first=1", "", ir::kInt8},
    {"conv2d_nhwc", "1,15,15,12,16,3,3,2,1,2", "", ir::kFloat32},
    {"conv2d_nhwc", "1,10,10,64,32,3,3,1,1,groups=2", "", ir::kFloat32},
    {"matmul", "64,64,64", "", ir::kInt8},
    {"matmul", "49,40,147", "", ir::kInt8},
    {"dense", "33,100,80", "", ir::kInt8},
    {"batch_matmul", "2,32,24,48,transpose_a=1", "", ir::kInt8},
    {"batch_matmul", "2,32,24,48,transpose_a=1,transpose_b=1", "", ir::kInt8},
    {"conv2d_nhwc", "1,14,14,32,32,3,3,1,1", "relu", ir::kInt8},
    {"conv2d_nhwc", "2,15,15,24,16,3,3,2,1,2", "", ir::kInt8},
    {"matmul", "64,64,64", "", ir::kFloat8E4M3},
    {"matmul", "49,40,147", "relu", ir::kFloat8E5M2},
    {"dense", "33,100,80", "bias", ir::kFloat8E4M3},
    {"batch_matmul", "2,32,24,48,transpose_a=1", "", ir::kFloat8E5M2},
    {"batch_matmul", "2,32,24,48,transpose_a=1,transpose_b=1", "", ir::kFloat8E4M3},
    {"conv2d_nhwc", "1,14,14,32,32,3,3,1,1", "bias,relu", ir::kFloat8E4M3},
    {"conv2d_nhwc", "2,15,15,24,16,3,3,2,1,2", "", ir::kFloat8E5M2},
};

// Products of more than 32 rows and at least 16 columns.
constexpr dag::OpCase kWarpgroupCases[] = {
    {"dense", "64,48,128", "cast,bias,gelu", ir::kFloat16},
    {"matmul", "64,64,64", "", ir::kFloat16},
    {"matmul", "128,256,64", "", ir::kBFloat16},
    {"matmul", "49,40,80", "relu", ir::kFloat16},
    {"dense", "64,48,64", "bias", ir::kFloat16},
    {"dense", "33,100,72", "", ir::kFloat16},
    {"batch_matmul", "3,64,32,32", "", ir::kFloat16},
    {"conv2d_nhwc", "1,14,14,16,32,3,3,1,1", "bias,relu", ir::kFloat16},
    {"conv2d_nhwc", "1,7,7,24,16,3,3,1,1", "", ir::kFloat16},
    {"conv2d_nhwc", "2,15,15,16,16,3,3,2,1", "relu", ir::kFloat16},
    {"conv2d_nhwc", "1,16,16,32,24,1,1,2,0", "", ir::kFloat16},
    {"conv1d_nwc", "1,64,32,32,3,1,1", "", ir::kFloat16},
    {"conv2d_nhwc", "1,14,14,64,64,3,3,1,1,groups=4", "", ir::kFloat16},
    {"dense", "64,48,64", "", ir::kFloat32},
    {"dense", "33,100,72", "bias", ir::kFloat32},
    {"batch_matmul", "2,64,32,40,transpose_b=1", "", ir::kFloat32},
    {"batch_matmul", "2,64,32,40,transpose_a=1,transpose_b=1", "", ir::kFloat32},
    {"matmul", "64,64,64", "", ir::kFloat32},
    {"matmul", "49,40,80", "relu", ir::kFloat32},
    {"conv2d_nhwc", "1,14,14,16,32,3,3,1,1", "bias,relu", ir::kFloat32},
    {"conv2d_nhwc", "1,14,14,32,32,3,3,1,1,output_first=1", "bias,relu", ir::kFloat32},
    {"conv2d_nhwc", "2,9,9,32,32,3,3,2,1,output_first=1", "", ir::kInt8},
    {"dense", "64,48,128", "", ir::kInt8},
    {"dense", "49,40,144", "", ir::kInt8},
    {"batch_matmul", "2,64,32,96,transpose_b=1", "", ir::kInt8},
    {"dense", "64,48,128", "", ir::kFloat8E4M3},
    {"dense", "49,40,144", "bias", ir::kFloat8E5M2},
};

void ExpectRight(std::span<const dag::OpCase> cases, MatrixUnitScope scope, std::string_view call) {
  const uint64_t seed = EnvironmentOr("KILN_SEED", 1);
  for (const dag::OpCase& c : cases) {
    SCOPED_TRACE(fmt::format("{}, seed {}", c.Name(), seed));
    const Task task = MatrixTask(c);
    const std::vector<State> states =
        MatrixStates(task, scope, seed, EnvironmentOr("KILN_CANDIDATES", 3));
    EXPECT_GE(states.size(), 2u);
    for (const State& state : states) {
      SCOPED_TRACE(schedule::PrintSteps(state.steps()));
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
      ASSERT_OK(codegen::CheckCudaProgram(program, task.hardware, task.target));
      ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
      EXPECT_THAT(source.text, HasSubstr(call));
      ASSERT_OK(codegen::CompareEmulated(program, 5, MatrixTolerance(c)));
      if (!codegen::FindNvrtc().ok()) continue;
      ASSERT_OK_AND_ASSIGN(const codegen::Cubin cubin, codegen::CompileSource(source, "sm_90"));
      // The log does not say that products wait for each other.
      EXPECT_EQ(cubin.log, "");
    }
  }
}

TEST(MatrixUnits, CandidatesComputeWhatTheProgramSays) {
  ExpectRight(kCases, MatrixUnitScope::kWarp, "multiply_tiles_");
}

TEST(MatrixUnits, TilesOfFourWarpsComputeWhatTheProgramSays) {
  ExpectRight(kWarpgroupCases, MatrixUnitScope::kWarpgroup, "multiply_warpgroup_");
}

// Groups of threads, blocks, and the blocks of clusters share sums, in every combination.
TEST(MatrixUnits, PartsOfSumsAreTheirs) {
  const dag::OpCase c{"conv2d_nhwc", "1,7,7,32,128,3,3,1,1", "bias,relu", ir::kFloat16};
  const Task task = MatrixTask(c);
  Parameters parameters;
  parameters.matrix_unit_prob = 1;
  Rng rng(EnvironmentOr("KILN_SEED", 1));
  size_t split = 0;
  for (const Sketch& sketch : GenerateSketches({task, parameters})) {
    const auto is_split = [](const schedule::StepPtr& step) {
      return schedule::Is<schedule::RfactorStep>(*step);
    };
    if (std::ranges::none_of(sketch.steps, is_split)) continue;
    SCOPED_TRACE(schedule::PrintSteps(sketch.steps));
    std::optional<State> found;
    for (int draw = 0; draw < 200 && !found; ++draw) {
      StatusOr<State> state = SampleGpu(sketch, task, parameters, rng);
      if (state.ok() && UnitOf(*state) != MatrixUnitScope::kNone) found = *std::move(state);
    }
    ASSERT_TRUE(found.has_value());
    SCOPED_TRACE(schedule::PrintSteps(found->steps()));
    ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(*found, {.gpu = true}));
    ASSERT_OK(codegen::CompareEmulated(program, 5, MatrixTolerance(c)));
    ++split;
  }
  EXPECT_GE(split, 5u);
}

// If there is a buffer to spare, products run on while the next ones begin.
TEST(MatrixUnits, ProductsOfTwoIterationsAreUnderWay) {
  for (const dag::OpCase& c : {dag::OpCase{"matmul", "64,64,256", "relu", ir::kFloat16},
                               dag::OpCase{"dense", "64,48,512", "", ir::kInt8}}) {
    SCOPED_TRACE(c.Name());
    const Task task = MatrixTask(c);
    int found = 0;
    for (const State& state :
         MatrixStates(task, MatrixUnitScope::kWarpgroup, EnvironmentOr("KILN_SEED", 1), 60)) {
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
      ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
      if (source.text.find("wait_for_products<1>();") == source.text.npos) continue;
      SCOPED_TRACE(schedule::PrintSteps(state.steps()));
      ASSERT_OK(codegen::CompareEmulated(program, 5, MatrixTolerance(c)));
      if (++found == 3) break;
    }
    EXPECT_GE(found, 1);
  }
}

bool IsStoredWhole(const std::string& text) {
  return text.find("transpose_quad(quad") != text.npos ||
         text.find("exchange_pairs(quad") != text.npos;
}

// Returns how many of the samples, up to two, have a text with the property. Checks that those
// compute the right outputs.
template <typename Fn>
int CountCorrectWithText(Fn&& fulfils, const dag::OpCase& c, MatrixUnitScope scope,
                         size_t samples) {
  const Task task = MatrixTask(c);
  int found = 0;
  for (const State& state : MatrixStates(task, scope, EnvironmentOr("KILN_SEED", 1), samples)) {
    SCOPED_TRACE(schedule::PrintSteps(state.steps()));
    const StatusOr<ir::Program> program = lower::Lower(state, {.gpu = true});
    EXPECT_OK(program.status());
    if (!program.ok()) return found;
    const StatusOr<codegen::CudaSource> source = codegen::GenerateCuda(*program);
    EXPECT_OK(source.status());
    if (!source.ok()) return found;
    if (!fulfils(source->text)) continue;
    EXPECT_OK(codegen::CompareEmulated(*program, 5, MatrixTolerance(c)));
    if (++found == 2) break;
  }
  return found;
}

// Threads exchange results so that each stores 16 bytes: four threads for results of 16 and 8 bits,
// two for 32 bits. The same holds for values that are added to the results, and for tiles that
// reach beyond the last row or column.
TEST(MatrixUnits, SmallResultsAreStoredWhole) {
  for (const auto& [c, is_whole] :
       {std::pair(dag::OpCase{"matmul", "64,64,64", "", ir::kFloat16}, true),
        {dag::OpCase{"dense", "64,64,64", "bias,relu", ir::kBFloat16}, true},
        {dag::OpCase{"conv2d_nhwc", "1,8,8,64,32,3,3,1,1", "bias,relu", ir::kFloat16}, true},
        {dag::OpCase{"matmul", "64,64,64", "add", ir::kFloat16}, true},
        {dag::OpCase{"conv2d_nhwc", "1,8,8,64,32,3,3,1,1", "bias,residual,relu", ir::kBFloat16},
         true},
        {dag::OpCase{"dense", "64,128,64", "", ir::kFloat8E4M3}, true},
        {dag::OpCase{"dense", "64,128,64", "bias,relu", ir::kFloat8E5M2}, true},
        {dag::OpCase{"dense", "64,128,64", "add", ir::kFloat8E4M3}, true},
        {dag::OpCase{"matmul", "50,64,64", "bias", ir::kFloat16}, true},
        {dag::OpCase{"conv2d_nhwc", "2,7,7,64,32,3,3,1,1", "bias,residual,relu", ir::kFloat16},
         true},
        {dag::OpCase{"dense", "50,128,64", "add", ir::kFloat8E4M3}, true},
        {dag::OpCase{"matmul", "64,72,64", "", ir::kFloat16}, true},
        {dag::OpCase{"matmul", "50,96,64", "bias,relu", ir::kFloat16}, true},
        {dag::OpCase{"conv2d_nhwc", "1,7,7,72,32,3,3,1,1", "bias,residual,relu", ir::kBFloat16},
         true},
        {dag::OpCase{"dense", "64,112,64", "add", ir::kFloat8E4M3}, true},
        {dag::OpCase{"matmul", "64,100,64", "", ir::kFloat16}, false},
        {dag::OpCase{"dense", "64,64,64", "", ir::kFloat32}, true},
        {dag::OpCase{"dense", "50,72,64", "bias,relu", ir::kFloat32}, true},
        {dag::OpCase{"conv2d_nhwc", "1,7,7,72,32,3,3,1,1,output_first=1", "bias,residual,relu",
                     ir::kFloat32},
         true},
        {dag::OpCase{"dense", "64,64,64", "", ir::kInt8}, true},
        {dag::OpCase{"matmul", "64,66,64", "", ir::kFloat32}, false}}) {
    for (const MatrixUnitScope scope : {MatrixUnitScope::kWarp, MatrixUnitScope::kWarpgroup}) {
      SCOPED_TRACE(c.Name());
      EXPECT_EQ(CountCorrectWithText(IsStoredWhole, c, scope, 40) > 0, is_whole);
    }
  }
}

// Rows of 10 or 18 tiles are no whole groups, so the results that are stored at once end with their
// row.
TEST(MatrixUnits, GroupsOfResultsEndWithTheirRow) {
  const auto has_rows = [](const std::string& text) {
    return IsStoredWhole(text) && text.find("_row < ") != text.npos;
  };
  for (const dag::OpCase& c :
       {dag::OpCase{"matmul", "128,144,64", "", ir::kFloat16},
        dag::OpCase{"matmul", "100,136,64", "bias,relu", ir::kBFloat16},
        dag::OpCase{"conv2d_nhwc", "1,9,9,80,32,3,3,1,1", "bias,residual,relu", ir::kFloat16},
        dag::OpCase{"dense", "128,144,64", "add", ir::kFloat8E4M3}}) {
    SCOPED_TRACE(c.Name());
    EXPECT_EQ(CountCorrectWithText(has_rows, c, MatrixUnitScope::kWarpgroup, 200), 2);
  }
}

// For 32 bits, if the second factor's neighbours are columns, some tiles have rows and columns
// exchanged.
TEST(MatrixUnits, SomeAreExchanged) {
  for (const dag::OpCase& c :
       {dag::OpCase{"matmul", "128,256,64", "bias,relu", ir::kFloat32},
        dag::OpCase{"matmul", "49,72,80", "add", ir::kFloat32},
        dag::OpCase{"batch_matmul", "2,64,64,40", "", ir::kFloat32},
        dag::OpCase{"conv2d_nhwc", "1,8,8,64,24,1,1,1,0", "bias,relu", ir::kFloat32}}) {
    SCOPED_TRACE(c.Name());
    const Task task = MatrixTask(c);
    int found = 0;
    for (const State& state :
         MatrixStates(task, MatrixUnitScope::kWarpgroup, EnvironmentOr("KILN_SEED", 1), 60)) {
      const auto product = TiledProductOf(state, *MatrixStageOf(state));
      ASSERT_TRUE(product.has_value());
      if (product->axes.back() != MatrixAxis::kRow) continue;
      SCOPED_TRACE(schedule::PrintSteps(state.steps()));
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
      ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
      EXPECT_THAT(source.text, HasSubstr("multiply_warpgroup_tf32<"));
      ASSERT_OK(codegen::CompareEmulated(program, 5, MatrixTolerance(c)));
      if (++found == 4) break;
    }
    EXPECT_EQ(found, 4);
  }
}

// A user's schedule may tile one axis alone, the axis that would become the rows of an exchanged
// tile.
TEST(MatrixUnits, TilesOfOneAxisAreNoExchangedOnes) {
  const Task task = MatrixTask({"matmul", "64,64,64", "", ir::kFloat32});
  ASSERT_OK_AND_ASSIGN(
      const std::vector<schedule::StepPtr> steps,
      schedule::ParseSteps(
          R"([["SP", 2, 1, 64, [2, 32, 1, 1], 1], ["PR", 2, 0, "matrix_unit$2"]])"));
  ASSERT_OK_AND_ASSIGN(const State state, schedule::Replay(task.dag, steps, task.stop));
  const std::optional<MatrixProduct> product = TiledProductOf(state, 2);
  ASSERT_TRUE(product.has_value());
  EXPECT_EQ(product->axes.back(), MatrixAxis::kColumn);
  EXPECT_THAT(CheckMatrixTiles(state),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("its axes are not tiled")));
}

// Half of the samples have swizzled tiles, the others padded ones.
TEST(MatrixUnits, TilesAreSwizzledOrPadded) {
  const Task task = MatrixTask(kCases[0]);
  std::set<bool> found;
  for (const State& state : MatrixStates(task, MatrixUnitScope::kWarp, 3, 30)) {
    ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
    ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
    found.insert(source.text.find("swizzled<") != source.text.npos);
  }
  EXPECT_EQ(found.size(), 2u);
}

// Code can be made from every sample: none is refused only when it is compiled.
TEST(MatrixUnits, SamplesFit) {
  for (const dag::OpCase& c : kCases) {
    SCOPED_TRACE(c.Name());
    const Task task = MatrixTask(c);
    for (const MatrixUnitScope scope : {MatrixUnitScope::kWarp, MatrixUnitScope::kWarpgroup}) {
      for (const State& state : MatrixStates(task, scope, 7, 30)) {
        SCOPED_TRACE(schedule::PrintSteps(state.steps()));
        ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
        ASSERT_OK(codegen::GenerateCuda(program).status());
      }
    }
  }
}

// The same holds for large products, whose sums are split into more parts, threes among them.
TEST(MatrixUnits, SamplesOfLargeProductsFit) {
  for (const dag::OpCase& c : {dag::OpCase{"matmul", "1536,1536,1536", "", ir::kFloat32},
                               dag::OpCase{"dense", "1536,1536,1536", "", ir::kFloat16}}) {
    SCOPED_TRACE(c.Name());
    const Task task = MatrixTask(c);
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      for (const State& state : MatrixStates(task, MatrixUnitScope::kWarpgroup, seed, 60)) {
        SCOPED_TRACE(schedule::PrintSteps(state.steps()));
        ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
        EXPECT_OK(codegen::GenerateCuda(program).status());
      }
    }
  }
}

TEST(MatrixUnits, OnlyOneArchitectureHasThoseOfFourWarps) {
  Parameters parameters;
  parameters.matrix_unit_prob = parameters.warpgroup_prob = 1;
  for (const auto& [target, scope] : {std::pair{"cuda -arch=sm_80", MatrixUnitScope::kWarp},
                                      {"cuda -arch=sm_90", MatrixUnitScope::kWarpgroup},
                                      {"cuda -arch=sm_100", MatrixUnitScope::kWarp}}) {
    const Task task(kCases[0].Build(), *target::ParseTarget(target), {}, "[]");
    Rng rng(3);
    std::set<MatrixUnitScope> units;
    for (const Sketch& sketch : GenerateSketches({task, parameters})) {
      for (int i = 0; i < 20; ++i) {
        const auto state = SampleGpu(sketch, task, parameters, rng);
        if (state.ok()) units.insert(UnitOf(*state));
      }
    }
    units.erase(MatrixUnitScope::kNone);
    EXPECT_EQ(units, std::set{scope}) << target;
  }
}

TEST(MatrixUnits, OnlyWhereThereAreSome) {
  Parameters parameters;
  parameters.matrix_unit_prob = 1;
  for (const auto& [target, dtype] : {std::pair{"cuda -arch=sm_75", ir::kFloat16},
                                      {"cuda -arch=sm_86", ir::kFloat8E4M3},
                                      {"cuda -arch=sm_90", ir::kFloat32}}) {
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
