// Tests products whose rows a kernel of its own copies from where an index chooses them: the step
// that makes the copy, and what samples of such sketches compute as programs and as CUDA text.
//
// KILN_SEED (default 1) chooses candidates. A failure prints the seed and the steps.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/checks.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/dag/text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/chosen_copy.h"
#include "compiler/schedule/steps/steps.h"
#include "tests/schedules/check_program.h"
#include "tests/schedules/environment.h"
#include "tests/schedules/matrix_candidates.h"

namespace kiln::search {
namespace {

using schedule::State;

// Stage 0 is the index, as it is needed first.
std::string TextOf(int64_t all, int64_t rows, int64_t depth, int64_t columns) {
  return fmt::format(
      "input x: float16[{0}, {2}]\n"
      "@range(0, {0}) input chosen: int32[{1}]\n"
      "input w: float16[{2}, {3}]\n"
      "s[i: {1}, j: {3}] = sum(k: {2}) float32(x[chosen[i], k]) * float32(w[k, j])\n"
      "y[i: {1}, j: {3}] = float16(s[i, j])\n",
      all, rows, depth, columns);
}

dag::DagPtr Parse(const std::string& text) {
  const auto dag = dag::ParseDag(text);
  KILN_CHECK(dag.ok(), "{}\n{}", Message(dag.status()), text);
  return *dag;
}

Task TaskOf(const dag::DagPtr& dag) {
  return Task(dag, *target::ParseTarget("cuda -arch=sm_90"), {}, "[]");
}

StatusOr<State> WithSteps(const dag::DagPtr& dag, std::string_view steps) {
  KILN_ASSIGN_OR_RETURN(const std::vector<schedule::StepPtr> parsed, schedule::ParseSteps(steps));
  return schedule::Replay(dag, parsed);
}

TEST(ChosenRows, AStepCopiesThem) {
  const std::string text = TextOf(40, 24, 32, 16);
  const Workload workload = MakeWorkload(text, Parse(text), 1);
  ASSERT_OK_AND_ASSIGN(const State state,
                       WithSteps(workload.dag, R"([["CHR", 1, "chosen", [3], [0, 1]]])"));
  const dag::Operator& copy = *state.stage(2).op;
  EXPECT_EQ(copy.name(), "x.chosen");
  EXPECT_EQ(copy.shape(), (std::vector<int64_t>{24, 32}));
  EXPECT_EQ(state.dag()->producers(4), (std::vector<int>{2, 3})) << "no index any more";
  ASSERT_OK(CheckByInterpreter(workload, state, /*gpu=*/true));
  ASSERT_OK(CheckByInterpreter(workload, state, /*gpu=*/false));
}

TEST(ChosenRows, TheStepIsRefusedElsewhere) {
  const auto refusal = [](const std::string& text, std::string_view steps) {
    return std::string(Message(WithSteps(Parse(text), steps).status()));
  };
  const std::string text = TextOf(40, 24, 32, 16);
  EXPECT_THAT(refusal(text, R"([["CHR", 0, "chosen", [3], [0, 1]]])"),
              testing::HasSubstr("it is not the later one of the array 1 and the index 0"));
  EXPECT_THAT(refusal(text, R"([["CHR", 3, "chosen", [4], [0, 1]]])"),
              testing::HasSubstr("y reads 0 arrays at places that an index chooses; expected one"));
  EXPECT_THAT(refusal(text, R"([["SP", 3, 0, 24, [4], 1], ["CHR", 1, "chosen", [3], [0, 1]]])"),
              testing::HasSubstr("the stage was split or fused before"));
}

bool CopiesRows(std::span<const schedule::StepPtr> steps) {
  return std::ranges::any_of(steps, [](const schedule::StepPtr& step) {
    const auto* copy = schedule::As<schedule::CacheReadStep>(*step);
    return copy != nullptr && copy->scope == schedule::kChosenScope;
  });
}

std::vector<Sketch> SketchesWithCopies(const Task& task, const Parameters& parameters) {
  std::vector<Sketch> sketches = GenerateSketches({task, parameters});
  std::erase_if(sketches, [](const Sketch& sketch) { return !CopiesRows(sketch.steps); });
  return sketches;
}

TEST(ChosenRows, AreCopiedForLargeProducts) {
  const auto count = [](const std::string& text) {
    return SketchesWithCopies(TaskOf(Parse(text)), Parameters()).size();
  };
  EXPECT_GT(count(TextOf(4096, 256, 3072, 2560)), 0u);
  EXPECT_EQ(count(TextOf(4096, 64, 1024, 1024)), 0u);
  EXPECT_EQ(count("input x: float16[256, 3072]\n"
                  "input w: float16[3072, 2560]\n"
                  "s[i: 256, j: 2560] = sum(k: 3072) float32(x[i, k]) * float32(w[k, j])\n"
                  "y[i: 256, j: 2560] = float16(s[i, j])\n"),
            0u)
      << "no index";
}

TEST(ChosenRows, SamplesComputeWhatTheDagSays) {
  const uint64_t seed = EnvironmentOr("KILN_SEED", 1);
  Parameters parameters;
  parameters.least_transposed_mflop = 0;
  parameters.matrix_unit_prob = parameters.warpgroup_prob = 1;
  const std::string text = TextOf(200, 128, 128, 128);
  const Workload workload = MakeWorkload(text, Parse(text), seed);
  const Task task = TaskOf(workload.dag);
  const std::vector<State> states = MatrixCandidates(
      task, SketchesWithCopies(task, parameters), parameters, seed, 200, 4,
      [](const State& state) { return UnitOf(state) == ir::MatrixUnitScope::kWarpgroup; });
  EXPECT_EQ(states.size(), 4u);
  for (const State& state : states) {
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, schedule::PrintSteps(state.steps())));
    ASSERT_OK(CheckByInterpreter(workload, state, /*gpu=*/true));
    ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
    ASSERT_OK(codegen::CheckCudaProgram(program, task.hardware, task.target));
    ASSERT_OK(codegen::CompareEmulated(program, seed, 2e-2));
  }
}

// The copy engine brings the tiles of the copied rows, which it can't of chosen ones.
TEST(ChosenRows, TilesOfTheCopyComeInBulk) {
  Parameters parameters;
  parameters.matrix_unit_prob = parameters.warpgroup_prob = 1;
  const Task task = TaskOf(Parse(TextOf(4096, 256, 3072, 2560)));
  const auto comes_in_bulk = [](const State& state) {
    const std::optional<int> s = MatrixStageOf(state);
    return s && state.stage(*s).hints[ir::Hint::kBulkCopies] > 0;
  };
  const uint64_t seed = EnvironmentOr("KILN_SEED", 1);
  EXPECT_FALSE(MatrixCandidates(task, SketchesWithCopies(task, parameters), parameters, seed, 60, 1,
                                comes_in_bulk)
                   .empty());
}

}  // namespace
}  // namespace kiln::search
