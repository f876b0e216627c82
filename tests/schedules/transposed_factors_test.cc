// Tests factors that a kernel of its own transposes, so that units of four warps read them along
// the sum: the CUDA text computes what the program says.
//
// KILN_SEED (default 1) and KILN_CANDIDATES (default 3, of each workload) choose which and how
// many. A failure prints workload, seed and steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/checks.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/steps.h"
#include "search/space/matrix_product.h"
#include "tests/schedules/environment.h"
#include "tests/schedules/matrix_candidates.h"

namespace kiln::search {
namespace {

using schedule::State;
using testing::HasSubstr;
using testing::Not;

Parameters OfSmallProducts() {
  Parameters parameters;
  parameters.matrix_unit_prob = parameters.warpgroup_prob = 1;
  parameters.least_transposed_mflop = 0;
  return parameters;
}

bool Transposes(const schedule::StepPtr& step) {
  const auto* copy = schedule::As<schedule::CacheReadStep>(*step);
  return copy != nullptr && !copy->order.empty();
}

std::vector<Sketch> SketchesThatTranspose(const Task& task, const Parameters& parameters) {
  std::vector<Sketch> sketches = GenerateSketches({task, parameters});
  std::erase_if(sketches, [](const Sketch& sketch) {
    return std::ranges::none_of(sketch.steps, Transposes);
  });
  return sketches;
}

bool IsOfFourWarps(const State& state) { return UnitOf(state) == ir::MatrixUnitScope::kWarpgroup; }

std::vector<State> States(const Task& task, uint64_t seed, size_t count) {
  const Parameters parameters = OfSmallProducts();
  return MatrixCandidates(task, SketchesThatTranspose(task, parameters), parameters, seed, 300,
                          count, IsOfFourWarps);
}

constexpr dag::OpCase kCases[] = {
    {"matmul", "128,64,64", "", ir::kFloat32},
    {"matmul", "64,48,80", "relu", ir::kFloat32},
    {"matmul", "128,64,128", "", ir::kInt8},
    {"matmul", "64,48,128", "relu", ir::kFloat8E4M3},
    {"batch_matmul", "2,64,32,64", "", ir::kFloat32},
    {"batch_matmul", "2,64,32,64,transpose_a=1", "", ir::kInt8},
    {"conv2d_nhwc", "1,14,14,32,32,3,3,1,1", "bias,relu", ir::kFloat32},
    {"conv2d_nhwc", "1,14,14,32,64,3,3,1,1", "relu", ir::kInt8},
    {"conv2d_nhwc", "2,15,15,32,64,3,3,2,1", "bias,relu", ir::kFloat8E5M2},
};

TEST(TransposedFactors, CandidatesComputeWhatTheProgramSays) {
  const uint64_t seed = EnvironmentOr("KILN_SEED", 1);
  for (const dag::OpCase& c : kCases) {
    SCOPED_TRACE(fmt::format("{}, seed {}", c.Name(), seed));
    const Task task = MatrixTask(c);
    const std::vector<State> states = States(task, seed, EnvironmentOr("KILN_CANDIDATES", 3));
    EXPECT_GE(states.size(), 2u);
    for (const State& state : states) {
      SCOPED_TRACE(schedule::PrintSteps(state.steps()));
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
      ASSERT_OK(codegen::CheckCudaProgram(program, task.hardware, task.target));
      ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
      EXPECT_THAT(source.text, HasSubstr("multiply_warpgroup_"));
      ASSERT_OK(codegen::CompareEmulated(program, 5, MatrixTolerance(c)));
    }
  }
}

// If the channels of a convolution do not come last, no units read its image and weights as they
// are. The copy of an image has the zeros around it.
TEST(TransposedFactors, ChannelsThatDoNotComeLast) {
  constexpr dag::OpCase kChannelsSecond[] = {
      {"conv2d_nchw", "1,14,14,32,32,3,3,1,1", "bias,relu", ir::kFloat16},
      {"conv2d_nchw", "2,15,15,16,64,3,3,2,1", "", ir::kBFloat16},
      {"conv2d_nchw", "1,12,12,32,64,3,3,1,1", "", ir::kFloat32},
      {"conv2d_nchw", "1,12,12,32,64,3,3,1,1,2", "", ir::kInt8},
      {"conv2d_nchw", "1,12,12,64,64,3,3,1,1,1,4", "bias,relu", ir::kFloat16},
      {"conv2d_nchw", "1,7,19,64,32,3,3,2,1,1,2", "", ir::kFloat32},
      {"conv2d_nchw", "1,8,8,128,128,1,1,1,0,1,2", "", ir::kInt8},
      {"conv3d_ncdhw", "1,3,8,8,32,16,3,3,3,1,1", "", ir::kFloat16}};
  for (const dag::OpCase& c : kChannelsSecond) {
    SCOPED_TRACE(c.Name());
    for (const std::string_view target :
         {"cuda -arch=sm_80 -math=tf32", "cuda -arch=sm_90 -math=tf32"}) {
      const Task task = MatrixTask(c, target);
      const Parameters parameters = OfSmallProducts();
      const std::vector<State> states =
          MatrixCandidates(task, SketchesThatTranspose(task, parameters), parameters,
                           EnvironmentOr("KILN_SEED", 1), 300, EnvironmentOr("KILN_CANDIDATES", 3),
                           [](const State& state) { return MatrixStageOf(state).has_value(); });
      EXPECT_GE(states.size(), 2u) << target;
      for (const State& state : states) {
        SCOPED_TRACE(schedule::PrintSteps(state.steps()));
        ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
        ASSERT_OK(codegen::CheckCudaProgram(program, task.hardware, task.target));
        ASSERT_OK(codegen::CompareEmulated(program, 5, MatrixTolerance(c)));
      }
    }
  }
}

// Code can be made from every sample.
TEST(TransposedFactors, SamplesFit) {
  for (const dag::OpCase& c :
       {dag::OpCase{"conv2d_nchw", "1,28,28,64,64,3,3,1,1", "bias,relu", ir::kFloat16},
        dag::OpCase{"conv2d_nchw", "2,15,15,32,64,3,3,2,1", "", ir::kInt8},
        dag::OpCase{"conv2d_nchw", "1,14,14,192,96,3,3,1,1,1,3", "relu", ir::kFloat16},
        dag::OpCase{"conv2d_nhwc", "1,14,14,32,64,3,3,1,1", "", ir::kFloat32}}) {
    SCOPED_TRACE(c.Name());
    const Task task = MatrixTask(c);
    Parameters parameters = OfSmallProducts();
    parameters.warpgroup_prob = 0.7;
    size_t found = 0;
    for (const State& state :
         MatrixCandidates(task, SketchesThatTranspose(task, parameters), parameters, 7, 300, 60,
                          [](const State& state) { return MatrixStageOf(state).has_value(); })) {
      SCOPED_TRACE(schedule::PrintSteps(state.steps()));
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
      ASSERT_OK(codegen::GenerateCuda(program).status());
      ++found;
    }
    EXPECT_GE(found, 20u);
  }
}

// Tiles of four warps are not drawn if a window moves by two along the columns, because none would
// fit.
TEST(TransposedFactors, NoneOfFourWarpsHaveColumnsApart) {
  const Parameters parameters = OfSmallProducts();
  for (const bool is_strided : {false, true}) {
    const Task task =
        MatrixTask({"conv2d_nchw", is_strided ? "1,33,33,128,32,3,3,2,1" : "1,16,16,128,32,3,3,1,1",
                    "", ir::kFloat16});
    Rng rng(EnvironmentOr("KILN_SEED", 1));
    int of_four_warps = 0;
    for (const Sketch& sketch : SketchesThatTranspose(task, parameters)) {
      for (int draw = 0; draw < 20; ++draw) {
        const StatusOr<State> state = SampleGpu(sketch, task, parameters, rng);
        if (!state.ok()) {
          EXPECT_THAT(state.status().message(), Not(HasSubstr("a window moves the columns")));
        } else if (IsOfFourWarps(*state)) {
          ++of_four_warps;
        }
      }
    }
    EXPECT_EQ(of_four_warps == 0, is_strided);
  }
}

// The copy is an ordinary array for the copy engine.
TEST(TransposedFactors, TheirTilesComeInBulk) {
  for (const dag::OpCase& c : {dag::OpCase{"matmul", "128,64,128", "", ir::kFloat32},
                               dag::OpCase{"matmul", "128,64,256", "", ir::kInt8}}) {
    SCOPED_TRACE(c.Name());
    int found = 0;
    for (const State& state : States(MatrixTask(c), EnvironmentOr("KILN_SEED", 1), 40)) {
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
      ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
      if (source.text.find("copy_box(") == source.text.npos) continue;
      SCOPED_TRACE(schedule::PrintSteps(state.steps()));
      ASSERT_OK(codegen::CompareEmulated(program, 5, MatrixTolerance(c)));
      if (++found == 2) break;
    }
    EXPECT_GE(found, 1);
  }
}

// Sums of 16 bits, small products, other targets, and factors that lie along the sum already are
// not transposed.
TEST(TransposedFactors, OnlyWhatGainsHasThem) {
  const Parameters small = OfSmallProducts(), usual;
  const auto count = [](const Task& task, const Parameters& parameters) {
    return SketchesThatTranspose(task, parameters).size();
  };
  const dag::OpCase matmul{"matmul", "64,64,64", "", ir::kFloat32};
  EXPECT_GE(count(MatrixTask(matmul), small), 1u);
  EXPECT_EQ(count(MatrixTask(matmul), usual), 0u);
  EXPECT_GE(count(MatrixTask({"matmul", "1024,1024,1024", "", ir::kFloat32}), usual), 1u);
  EXPECT_EQ(count(MatrixTask(matmul, "cuda -arch=sm_90"), small), 0u) << "no TF32";
  EXPECT_EQ(count(MatrixTask(matmul, "cuda -arch=sm_80 -math=tf32"), small), 0u);
  EXPECT_EQ(count(MatrixTask({"matmul", "64,64,64", "", ir::kFloat16}), small), 0u);
  EXPECT_EQ(count(MatrixTask({"dense", "64,64,64", "", ir::kFloat32}), small), 0u);
}

}  // namespace
}  // namespace kiln::search
