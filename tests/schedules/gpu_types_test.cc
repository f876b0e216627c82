// Tests programs over short floats and bytes, and reductions over threads, as CUDA text on a CPU.
// The search's proposals compute what the interpreter computes, with the instructions meant for the
// types.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/step.h"
#include "search/policies/policy.h"

namespace kiln::search {
namespace {

// Emulates and compares n proposals. Returns their texts.
std::string CheckedTexts(const dag::DagPtr& dag, int n, double tolerance,
                         std::string_view target = "cuda -arch=sm_90") {
  const Task task(dag, *target::ParseTarget(target), {}, "[]");
  const StatusOr<std::unique_ptr<Policy>> policy = MakePolicy("sketch.random", task, 5);
  KILN_CHECK(policy.ok(), "{}", Message(policy.status()));
  const StatusOr<std::vector<Candidate>> candidates = (*policy)->Propose(n);
  KILN_CHECK(candidates.ok(), "{}", Message(candidates.status()));
  std::string texts;
  for (const Candidate& candidate : *candidates) {
    SCOPED_TRACE(schedule::PrintSteps(candidate.steps));
    const StatusOr<schedule::State> state = schedule::Replay(dag, candidate.steps);
    KILN_CHECK(state.ok(), "{}", Message(state.status()));
    const StatusOr<ir::Program> program = lower::Lower(*state, {.gpu = true});
    KILN_CHECK(program.ok(), "{}", Message(program.status()));
    EXPECT_OK(codegen::CompareEmulated(*program, 9, tolerance));
    const StatusOr<codegen::CudaSource> source = codegen::GenerateCuda(*program);
    EXPECT_OK(source.status());
    if (source.ok()) texts += source->text;
  }
  if (codegen::FindNvrtc().ok()) {
    const StatusOr<schedule::State> state = schedule::Replay(dag, candidates->front().steps);
    const StatusOr<codegen::CudaSource> source =
        codegen::GenerateCuda(*lower::Lower(*state, {.gpu = true}));
    EXPECT_OK(codegen::CompileCubin(source->text, "sm_90").status());
  }
  return texts;
}

dag::DagPtr Dense(std::string_view type, std::string_view sum) {
  const auto dag = dag::ParseDag(fmt::format(
      "input A: {0}[32, 64]\ninput B: {0}[32, 64]\nC[i: 32, j: 32] = sum(k: 64) {1}\n", type, sum));
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  return *dag;
}

TEST(GpuTypes, Halves) {
  const std::string texts =
      CheckedTexts(Dense("float16", "float32(A[i, k]) * float32(B[j, k])"), 6, 1e-3);
  EXPECT_THAT(texts, testing::ContainsRegex("f16_x[248]"));
}

// The sum is rounded to 16 bits at every step, as the declaration says.
TEST(GpuTypes, HalvesSummedAsHalves) {
  CheckedTexts(Dense("float16", "A[i, k] * B[j, k]"), 4, 2e-3);
}

TEST(GpuTypes, BrainFloats) {
  const std::string texts =
      CheckedTexts(Dense("bfloat16", "float32(A[i, k]) * float32(B[j, k])"), 4, 1e-3);
  EXPECT_THAT(texts, testing::ContainsRegex("bf16_x[248]"));
}

TEST(GpuTypes, Float8s) {
  for (const auto& [type, vector] :
       {std::pair{"float8_e4m3fn", "e4m3_x(2|4|8|16)"}, {"float8_e5m2", "e5m2_x(2|4|8|16)"}}) {
    const std::string texts =
        CheckedTexts(Dense(type, "float32(A[i, k]) * float32(B[j, k])"), 4, 1e-3);
    EXPECT_THAT(texts, testing::ContainsRegex(vector));
  }
  // The declaration asks for sums in 8 bits, so results that round differently may be neighbours.
  // Maxima over threads are shuffled as they are.
  CheckedTexts(Dense("float8_e5m2", "A[i, k] * B[j, k]"), 2, 0.3, "cuda -arch=sm_80");
  const auto largest =
      dag::ParseDag("input A: float8_e4m3fn[3, 300]\nC[i: 3] = max(k: 300) A[i, k]\n");
  ASSERT_OK(largest);
  EXPECT_THAT(CheckedTexts(*largest, 6, 0), testing::HasSubstr("__shfl_down_sync("));
}

TEST(GpuTypes, Bytes) {
  // The GPU has no matrix units, so that every proposal multiplies by the cores' own instructions.
  const std::string texts =
      CheckedTexts(Dense("int8", "int32(A[i, k]) * int32(B[j, k])"), 8, 0, "cuda -arch=sm_61");
  EXPECT_THAT(texts, testing::HasSubstr("__dp4a("));
  EXPECT_THAT(texts, testing::ContainsRegex("char_x(2|4|8|16)"));
}

TEST(GpuTypes, ReductionsOverThreads) {
  for (const auto& [op, args] : {std::pair{"softmax", "3,300"},
                                 {"argmax", "2,1000,axis=1"},
                                 {"layer_norm", "2,1000,one_pass=1"}}) {
    SCOPED_TRACE(op);
    const auto dag = dag::BuildOp(op, args);
    ASSERT_OK(dag);
    EXPECT_THAT(CheckedTexts(*dag, 4, 1e-5), testing::HasSubstr("__shfl_down_sync("));
  }
}

}  // namespace
}  // namespace kiln::search
