// Tests products of which one factor is computed from fewer bytes, as weights of 8 or 4 bits with
// scales are: the search computes it where the product reads it, with and without matrix units, and
// the CUDA text computes what the program says.
//
// KILN_SEED (default 1) and KILN_CANDIDATES (default 2, of each computation) choose which and how
// many. A failure prints the computation, the seed and the steps.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/checks.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/dag/text.h"
#include "compiler/lower/lower.h"
#include "search/space/matrix_product.h"
#include "tests/schedules/environment.h"
#include "tests/schedules/matrix_candidates.h"

namespace kiln::search {
namespace {

using ir::MatrixUnitScope;
using schedule::State;
using testing::HasSubstr;

constexpr std::string_view kBytes = R"(input x: {type}[{m}, {k}]
input w: int8[{k}, {n}]
input scale: {type}[{groups}, {n}]
v[k: {k}, j: {n}] = {type}(w[k, j]) * scale[k // 32, j]
)";
constexpr std::string_view kNibbles = R"(input x: {type}[{m}, {k}]
input w: uint8[{half}, {n}]
input scale: {type}[{groups}, {n}]
v[k: {k}, j: {n}] = )"
                                      "{type}(int32((w[k // 2, j] >> uint8(k % 2 * 4)) & uint8(15))"
                                      " - 8) * scale[k // 32, j]\n";
constexpr std::string_view kZeroPoints = R"(input x: {type}[{m}, {k}]
input w: uint8[{k}, {n}]
input scale: {type}[{groups}, {n}]
input zero: uint8[{groups}, {n}]
v[k: {k}, j: {n}] = {type}(int32(w[k, j]) - int32(zero[k // 32, j])) * scale[k // 32, j]
)";
constexpr std::string_view kProduct =
    R"(s[i: {m}, j: {n}] = sum(k: {k}) float32(x[i, k]) * float32(v[k, j])
y[i: {m}, j: {n}] = {type}(s[i, j])
)";

struct Computation {
  std::string_view weights;
  int64_t rows, columns, depth;
  std::string_view type = "float16";

  std::string Text() const {
    return fmt::format(fmt::runtime(std::string(weights) + std::string(kProduct)),
                       fmt::arg("type", type), fmt::arg("m", rows), fmt::arg("n", columns),
                       fmt::arg("k", depth), fmt::arg("half", depth / 2),
                       fmt::arg("groups", depth / 32));
  }
};

const Computation kComputations[] = {
    {kBytes, 16, 128, 64},      {kBytes, 64, 64, 128},   {kBytes, 33, 72, 96, "bfloat16"},
    {kNibbles, 16, 128, 128},   {kNibbles, 64, 256, 64}, {kNibbles, 24, 64, 128, "bfloat16"},
    {kZeroPoints, 16, 128, 64}, {kNibbles, 1, 128, 128}, {kBytes, 4, 128, 64},
    {kNibbles, 8, 128, 128},
};

Task TaskOf(const Computation& c) {
  auto dag = dag::ParseDag(c.Text());
  EXPECT_TRUE(dag.ok()) << dag.status() << c.Text();
  return Task(*dag, *target::ParseTarget("cuda -arch=sm_90"), {}, "[]");
}

// Is what the factor is computed of in shared memory, not the factor?
bool IsUnpackedAtReader(const State& state) {
  bool has_weights = false, has_factor = false;
  for (int s = 0; s < state.num_stages(); ++s) {
    has_weights |= state.stage(s).op->name() == "w.shared";
    has_factor |= state.stage(s).op->name() == "v.shared";
  }
  return has_weights && !has_factor;
}

void ExpectRight(const State& state, const Task& task, double tolerance, std::string_view call) {
  SCOPED_TRACE(schedule::PrintSteps(state.steps()));
  ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
  ASSERT_OK(codegen::CheckCudaProgram(program, task.hardware, task.target));
  ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
  EXPECT_THAT(source.text, HasSubstr(call));
  ASSERT_OK(codegen::CompareEmulated(program, 5, tolerance));
  if (!codegen::FindNvrtc().ok()) return;
  ASSERT_OK_AND_ASSIGN(const codegen::Cubin cubin, codegen::CompileSource(source, "sm_90"));
  EXPECT_EQ(cubin.log, "");
}

// The unit rounds the factor, the program does not: terms of up to 8, by 2^-11 or 2^-8.
double ToleranceOf(const Computation& c) { return c.type == "float16" ? 5e-2 : 0.4; }

TEST(ComputedFactors, AreComputedInRegistersOfMatrixUnits) {
  const uint64_t seed = EnvironmentOr("KILN_SEED", 1);
  const auto wanted = static_cast<size_t>(EnvironmentOr("KILN_CANDIDATES", 2));
  for (const Computation& c : kComputations) {
    SCOPED_TRACE(fmt::format("{}seed {}", c.Text(), seed));
    const Task task = TaskOf(c);
    Parameters parameters;
    parameters.matrix_unit_prob = 1;
    const std::vector<State> states = MatrixCandidates(
        task, GenerateSketches({task, parameters}), parameters, seed, 200, wanted,
        [](const State& state) {
          return IsUnpackedAtReader(state) && UnitOf(state) == MatrixUnitScope::kWarp;
        });
    EXPECT_EQ(states.size(), wanted);
    for (const State& state : states) ExpectRight(state, task, ToleranceOf(c), "multiply_tiles_");
  }
}

// The factor is the first one of units of four warps, which multiply the exchanged product.
TEST(ComputedFactors, AreComputedInRegistersOfFourWarps) {
  const uint64_t seed = EnvironmentOr("KILN_SEED", 1);
  const auto wanted = static_cast<size_t>(EnvironmentOr("KILN_CANDIDATES", 2));
  for (const Computation& c :
       {Computation{kBytes, 48, 256, 64}, Computation{kBytes, 64, 256, 128},
        Computation{kNibbles, 64, 512, 128}, Computation{kNibbles, 40, 256, 128, "bfloat16"},
        Computation{kZeroPoints, 64, 256, 64}}) {
    SCOPED_TRACE(fmt::format("{}seed {}", c.Text(), seed));
    const Task task = TaskOf(c);
    Parameters parameters;
    parameters.matrix_unit_prob = 1;
    parameters.warpgroup_prob = 1;
    const std::vector<State> states = MatrixCandidates(
        task, GenerateSketches({task, parameters}), parameters, seed, 200, wanted,
        [](const State& state) {
          return IsUnpackedAtReader(state) && UnitOf(state) == MatrixUnitScope::kWarpgroup;
        });
    EXPECT_EQ(states.size(), wanted);
    for (const State& state : states)
      ExpectRight(state, task, ToleranceOf(c), "multiply_warpgroup_");
  }
}

// Few rows are multiplied by single warps.
TEST(ComputedFactors, FourWarpsMultiplyManyRows) {
  const Task task = TaskOf({kBytes, 32, 256, 128});
  Parameters parameters;
  parameters.matrix_unit_prob = 1;
  parameters.warpgroup_prob = 1;
  EXPECT_TRUE(MatrixCandidates(task, GenerateSketches({task, parameters}), parameters, 1, 40, 1,
                               [](const State& state) {
                                 return IsUnpackedAtReader(state) &&
                                        UnitOf(state) == MatrixUnitScope::kWarpgroup;
                               })
                  .empty());
}

TEST(ComputedFactors, AreComputedByThreads) {
  for (const Computation& c :
       {Computation{kBytes, 1, 256, 128}, Computation{kNibbles, 1, 128, 256}}) {
    SCOPED_TRACE(c.Text());
    const Task task = TaskOf(c);
    Parameters parameters;
    parameters.matrix_unit_prob = 0;
    const std::vector<State> states =
        MatrixCandidates(task, GenerateSketches({task, parameters}), parameters,
                         EnvironmentOr("KILN_SEED", 1), 50, 2, IsUnpackedAtReader);
    EXPECT_EQ(states.size(), 2u);
    for (const State& state : states) ExpectRight(state, task, ToleranceOf(c), "w_shared");
  }
}

// Copies of packed weights need no registers, those of unpacked ones do.
TEST(ComputedFactors, TheirBytesAreCopiedAsynchronously) {
  const Task task = TaskOf({kBytes, 16, 128, 256});
  Parameters parameters;
  parameters.matrix_unit_prob = 1;
  const auto is_async = [](const State& state) {
    const std::optional<int> stage = MatrixStageOf(state);
    return stage && state.stage(*stage).asynchronous;
  };
  const std::vector<Sketch> sketches = GenerateSketches({task, parameters});
  EXPECT_FALSE(MatrixCandidates(task, sketches, parameters, 1, 100, 1, [&](const State& state) {
                 return IsUnpackedAtReader(state) && is_async(state);
               }).empty());
}

// A factor as large as its inputs is computed on its way to shared memory.
TEST(ComputedFactors, AFactorOfAsManyBytesIsNone) {
  const Task task = TaskOf({R"(input x: {type}[{m}, {k}]
input w: {type}[{k}, {n}]
v[k: {k}, j: {n}] = max(w[k, j], {type}(0))
)",
                            64, 64, 64});
  const Parameters parameters;
  for (const Sketch& sketch : GenerateSketches({task, parameters}))
    EXPECT_FALSE(IsUnpackedAtReader(sketch.state));
}

}  // namespace
}  // namespace kiln::search
