// Tests a maximum and the sum of exponentials below it as one reduction: which computations have
// such sketches, what samples of them compute as programs and as CUDA text, and whether a search
// proposes them for a few long rows.
//
// KILN_SEED (default 1) chooses candidates. A failure prints the computation, the seed and the
// steps.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/numbers/rng.h"
#include "base/status_testing.h"
#include "compiler/codegen/cuda/checks.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/steps.h"
#include "search/policies/policy.h"
#include "search/sampling/sample_gpu.h"
#include "search/space/sketch.h"
#include "tests/schedules/check_program.h"
#include "tests/schedules/environment.h"
#include "tests/schedules/long_rows.h"

namespace kiln::search {
namespace {

using schedule::State;

// The exponentials are an operator of their own, as TVM writes it.
std::string Softmax(int64_t rows, int64_t columns) {
  return fmt::format(
      "input x: float32[{0}, {1}]\n"
      "m[i: {0}] = max(k: {1}) x[i, k]\n"
      "e[i: {0}, k: {1}] = exp(x[i, k] - m[i])\n"
      "s[i: {0}] = sum(k: {1}) e[i, k]\n"
      "y[i: {0}, k: {1}] = e[i, k] / s[i]\n",
      rows, columns);
}

bool HasAPair(std::span<const schedule::StepPtr> steps) {
  return std::ranges::any_of(steps, [](const schedule::StepPtr& step) {
    const auto* write = schedule::As<schedule::CacheWriteStep>(*step);
    return write != nullptr && !write->joined.empty();
  });
}

std::vector<Sketch> SketchesWithPairs(const Task& task) {
  std::vector<Sketch> sketches = GenerateSketches({task, Parameters()});
  std::erase_if(sketches, [](const Sketch& sketch) { return !HasAPair(sketch.steps); });
  return sketches;
}

TEST(MaxAndSum, AreForAFewLongRows) {
  const auto count = [](const std::string& text) {
    return SketchesWithPairs(TaskOf(Parse(text))).size();
  };
  EXPECT_GT(count(LogSoftmax(8, 50257, "float16")), 0u);
  EXPECT_GT(count(LogSoftmax(96, 32128, "float32")), 0u);
  EXPECT_GT(count(Softmax(8, 50257)), 0u);
  EXPECT_EQ(count(LogSoftmax(640, 49152, "float32")), 0u) << "a row for each block";
  EXPECT_EQ(count(Softmax(8, 1000)), 0u) << "a block reads a row at once";
  EXPECT_EQ(count("input x: float32[64, 50257]\n"
                  "m[i: 64] = max(k: 50257) x[i, k]\n"
                  "s[i: 64] = sum(k: 50257) exp(x[i, k])\n"
                  "y[i: 64] = m[i] + s[i]\n"),
            0u)
      << "the sum does not read the maximum";
}

std::vector<State> SamplesOf(const Task& task, uint64_t seed, size_t count) {
  Rng rng(seed);
  std::vector<State> states;
  const std::vector<Sketch> sketches = SketchesWithPairs(task);
  for (size_t draw = 0; draw < 40 * sketches.size() && states.size() < count; ++draw) {
    StatusOr<State> state = SampleGpu(sketches[draw % sketches.size()], task, Parameters(), rng);
    if (state.ok()) states.push_back(*std::move(state));
  }
  return states;
}

TEST(MaxAndSum, SamplesComputeWhatTheDagSays) {
  const uint64_t seed = EnvironmentOr("KILN_SEED", 1);
  for (const std::string& text :
       {LogSoftmax(2, 9000, "float32"), LogSoftmax(1, 16400, "float16"), Softmax(3, 8200)}) {
    SCOPED_TRACE(text);
    const Workload workload = MakeWorkload(text, Parse(text), seed);
    const Task task = TaskOf(workload.dag);
    const std::vector<State> states = SamplesOf(task, seed, 8);
    EXPECT_EQ(states.size(), 8u);
    for (const State& state : states) {
      SCOPED_TRACE(schedule::PrintSteps(state.steps()));
      ASSERT_OK(CheckByInterpreter(workload, state, /*gpu=*/true));
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
      ASSERT_OK(codegen::CheckCudaProgram(program, task.hardware, task.target));
      ASSERT_OK(codegen::CompareEmulated(program, seed, 2e-2));
    }
  }
}

// The analytic model ranks, with the constants of an H200.
TEST(MaxAndSum, AreWhatASearchProposesFirstForAFewLongRows) {
  const Task task = TaskOf(Parse(LogSoftmax(8, 50257, "float16")));
  ASSERT_OK_AND_ASSIGN(const Models models, MakeModels("sketch.analytic", 1));
  ASSERT_OK_AND_ASSIGN(const auto policy,
                       MakePolicy("sketch.analytic", task, EnvironmentOr("KILN_SEED", 1),
                                  {.models = models, .threads = 1}));
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> candidates, policy->Propose(16));
  ASSERT_FALSE(candidates.empty());
  const auto best = std::ranges::max_element(candidates, {}, [](const Candidate& candidate) {
    return candidate.score == kNoScore ? -1e9 : candidate.score;
  });
  EXPECT_TRUE(HasAPair(best->steps)) << schedule::PrintSteps(best->steps);
  ASSERT_OK_AND_ASSIGN(const State state, schedule::Replay(task.dag, best->steps));
  ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
  EXPECT_LE(program.kernels.size(), 3u);
}

}  // namespace
}  // namespace kiln::search
