// Tests long rows that a block keeps in shared memory for all of their readers: which computations
// have such sketches, what samples of them compute as programs and as CUDA text, and whether a
// search proposes them.
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
#include "compiler/codegen/cuda/source.h"
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

// The maximum and the sum have one element for each row, as their reader has.
std::string LogSumExp(int64_t rows, int64_t columns) {
  return fmt::format(
      "input x: float32[{0}, {1}]\n"
      "m[i: {0}] = max(k: {1}) x[i, k]\n"
      "s[i: {0}] = sum(k: {1}) exp(x[i, k] - m[i])\n"
      "y[i: {0}] = m[i] + log(s[i])\n",
      rows, columns);
}

bool KeepsARow(std::span<const schedule::StepPtr> steps) {
  return std::ranges::any_of(steps, [](const schedule::StepPtr& step) {
    return schedule::Is<schedule::CacheReadStep>(*step);
  });
}

std::vector<Sketch> SketchesWithRows(const Task& task) {
  std::vector<Sketch> sketches = GenerateSketches({task, Parameters()});
  std::erase_if(sketches, [](const Sketch& sketch) { return !KeepsARow(sketch.steps); });
  return sketches;
}

TEST(KeptRows, AreForLongRowsThatFit) {
  const auto count = [](const std::string& text) {
    return SketchesWithRows(TaskOf(Parse(text))).size();
  };
  EXPECT_GT(count(LogSoftmax(640, 49152, "float16")), 0u);
  EXPECT_GT(count(LogSoftmax(640, 49152, "float32")), 0u);
  EXPECT_GT(count(LogSumExp(640, 49152)), 0u);
  EXPECT_EQ(count(LogSoftmax(512, 1000, "float32")), 0u) << "the cache has room for several rows";
  EXPECT_EQ(count(LogSoftmax(640, 131072, "float32")), 0u) << "512 KB";
  EXPECT_EQ(count("input x: float32[640, 49152]\n"
                  "m[i: 640] = max(k: 49152) x[i, k]\n"),
            0u)
      << "it is read once";
}

std::vector<State> SamplesOf(const Task& task, uint64_t seed, size_t count) {
  Rng rng(seed);
  std::vector<State> states;
  const std::vector<Sketch> sketches = SketchesWithRows(task);
  for (size_t draw = 0; draw < 40 * sketches.size() && states.size() < count; ++draw) {
    StatusOr<State> state = SampleGpu(sketches[draw % sketches.size()], task, Parameters(), rng);
    if (state.ok()) states.push_back(*std::move(state));
  }
  return states;
}

TEST(KeptRows, SamplesComputeWhatTheDagSays) {
  const uint64_t seed = EnvironmentOr("KILN_SEED", 1);
  for (const std::string& text :
       {LogSoftmax(2, 8200, "float32"), LogSoftmax(2, 16640, "float16"), LogSumExp(3, 8192)}) {
    SCOPED_TRACE(text);
    const Workload workload = MakeWorkload(text, Parse(text), seed);
    const Task task = TaskOf(workload.dag);
    const std::vector<State> states = SamplesOf(task, seed, 3);
    EXPECT_EQ(states.size(), 3u);
    for (const State& state : states) {
      ASSERT_OK(CheckByInterpreter(workload, state, /*gpu=*/true));
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
      ASSERT_OK(codegen::CheckCudaProgram(program, task.hardware, task.target));
    }
  }
}

// The threads read vectors of the row, as they read vectors of global memory.
TEST(KeptRows, CudaTextReadsVectorsOfTheRow) {
  const uint64_t seed = EnvironmentOr("KILN_SEED", 1);
  const Task task = TaskOf(Parse(LogSoftmax(2, 16384, "float16")));
  int with_vectors = 0;
  for (const State& state : SamplesOf(task, seed, 4)) {
    SCOPED_TRACE(schedule::PrintSteps(state.steps()));
    ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
    ASSERT_EQ(program.kernels.size(), 1u);
    ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
    with_vectors += source.text.find("*>(&x_shared[") != std::string::npos;
    ASSERT_OK(codegen::CompareEmulated(program, seed, 2e-2));
  }
  EXPECT_GT(with_vectors, 0);
}

// The analytic model ranks, with the constants of an H200.
TEST(KeptRows, AreWhatASearchProposesFirst) {
  for (const std::string_view type : {"float16", "float32"}) {
    SCOPED_TRACE(type);
    const Task task = TaskOf(Parse(LogSoftmax(640, 49152, type)));
    ASSERT_OK_AND_ASSIGN(const Models models, MakeModels("sketch.analytic", 1));
    ASSERT_OK_AND_ASSIGN(const auto policy,
                         MakePolicy("sketch.analytic", task, EnvironmentOr("KILN_SEED", 1),
                                    {.models = models, .threads = 1}));
    ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> candidates, policy->Propose(16));
    ASSERT_FALSE(candidates.empty());
    const auto best = std::ranges::max_element(candidates, {}, [](const Candidate& candidate) {
      return candidate.score == kNoScore ? -1e9 : candidate.score;
    });
    EXPECT_TRUE(KeepsARow(best->steps)) << schedule::PrintSteps(best->steps);
  }
}

}  // namespace
}  // namespace kiln::search
