// Tests products whose rows are several axes in name only. Merged to one axis, they compute what
// the DAG says on the same bytes, and their tiles come in bulk.
//
// KILN_SEED (default 1) chooses the candidates. A failure prints workload, seed and steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/steps.h"
#include "search/sampling/sample_gpu.h"
#include "search/space/matrix_product.h"
#include "tests/schedules/check_program.h"
#include "tests/schedules/environment.h"

namespace kiln::search {
namespace {

using schedule::State;
using testing::HasSubstr;

Task MakeTask(const dag::OpCase& c) {
  return Task(c.Build(), *target::ParseTarget("cuda -arch=sm_90"), {}, "[]");
}

bool Merges(const Sketch& sketch) {
  return std::ranges::any_of(sketch.steps, [](const schedule::StepPtr& step) {
    return schedule::Is<schedule::MergeAxesStep>(*step);
  });
}

std::vector<State> States(const Task& task, const Parameters& parameters, size_t count) {
  const std::vector<Sketch> sketches = GenerateSketches({task, parameters});
  Rng rng(EnvironmentOr("KILN_SEED", 1));
  std::vector<State> states;
  for (size_t draw = 0; draw < 300 * sketches.size() && states.size() < count; ++draw) {
    StatusOr<State> state = SampleGpu(sketches[draw % sketches.size()], task, parameters, rng);
    if (state.ok()) states.push_back(*std::move(state));
  }
  return states;
}

constexpr dag::OpCase kPointwise[] = {
    {"conv2d_nhwc", "1,7,7,16,32,1,1,1,0", "bias,relu", ir::kFloat16},
    {"conv2d_nhwc", "2,5,9,24,16,1,1,1,0", "", ir::kFloat16},
    {"conv2d_nhwc", "2,6,6,16,16,1,1,1,0", "bias,residual,relu", ir::kBFloat16},
};

TEST(MergedRows, AllSketchesOfPointwiseConvolutionsHaveThem) {
  for (const dag::OpCase& c : kPointwise) {
    const Task task = MakeTask(c);
    const std::vector<Sketch> sketches = GenerateSketches({task, Parameters()});
    EXPECT_TRUE(std::ranges::all_of(sketches, Merges))
        << c.Name() << "\n"
        << schedule::PrintSteps(std::ranges::find_if_not(sketches, Merges)->steps);
    Parameters without;
    without.merged_rows = false;
    EXPECT_TRUE(std::ranges::none_of(GenerateSketches({task, without}), Merges)) << c.Name();
  }
  for (const dag::OpCase& c : {dag::OpCase{"conv2d_nhwc", "1,8,8,16,16,3,3,1,1", "", ir::kFloat16},
                               dag::OpCase{"conv2d_nhwc", "1,8,8,16,16,1,1,2,0", "", ir::kFloat16},
                               dag::OpCase{"matmul", "64,64,64", "", ir::kFloat16},
                               dag::OpCase{"conv2d_nhwc", "1,7,7,16,32,1,1,1,0", ""}}) {
    EXPECT_TRUE(std::ranges::none_of(GenerateSketches({MakeTask(c), Parameters()}), Merges))
        << c.Name();
  }
}

TEST(MergedRows, ProgramsComputeWhatTheDagSays) {
  for (const dag::OpCase& c : kPointwise) {
    const Task task = MakeTask(c);
    const Workload workload = MakeWorkload(c.Name(), task.dag, 3);
    for (const double prob : {0.0, 1.0}) {
      Parameters parameters;
      parameters.matrix_unit_prob = prob;
      const std::vector<State> states = States(task, parameters, 4);
      EXPECT_EQ(states.size(), 4u) << c.Name();
      for (const State& state : states) EXPECT_OK(CheckByInterpreter(workload, state, true));
    }
  }
}

TEST(MergedRows, TheirTilesComeInBulk) {
  const dag::OpCase c{"conv2d_nhwc", "2,8,16,32,128,1,1,1,0", "bias,relu", ir::kFloat16};
  const Task task = MakeTask(c);
  Parameters parameters;
  parameters.matrix_unit_prob = parameters.warpgroup_prob = 1;
  int found = 0;
  for (const State& state : States(task, parameters, 60)) {
    ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
    ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
    if (source.text.find("copy_box(") == source.text.npos) continue;
    SCOPED_TRACE(schedule::PrintSteps(state.steps()));
    EXPECT_THAT(source.text, HasSubstr("multiply_warpgroup_"));
    ASSERT_OK(codegen::CompareEmulated(program, 5, 1e-2));
    if (++found == 2) break;
  }
  EXPECT_EQ(found, 2);
}

}  // namespace
}  // namespace kiln::search
