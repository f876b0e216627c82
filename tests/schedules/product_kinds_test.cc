// Tests several products that one operator reads: matrix units compute each of them, as they
// compute the only one of other computations.
//
// KILN_SEED (default 1) chooses the computations. A failure prints the computation, the seed and
// the steps.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/numbers/rng.h"
#include "base/status_testing.h"
#include "compiler/codegen/cuda/checks.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/dag/text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/steps.h"
#include "search/sampling/sample_gpu.h"
#include "search/space/matrix_product.h"
#include "search/space/sketch.h"
#include "tests/schedules/check_program.h"
#include "tests/schedules/environment.h"

namespace kiln::search {
namespace {

using ir::MatrixUnitScope;
using schedule::State;

// Two products of one input, whose values one operator multiplies; three, which it adds; two of
// different inputs and lengths.
enum class Kind { kTwo, kThree, kOfTwoInputs };
constexpr std::array kKinds = {Kind::kTwo, Kind::kThree, Kind::kOfTwoInputs};

struct Sizes {
  int64_t rows, columns, depth;
  std::string_view type = "float16";
  bool along_depth = false;  // the weights' neighbours
};

int NumProducts(Kind kind) { return kind == Kind::kThree ? 3 : 2; }

// The text of `name` = a product, whose first factor is read at `rows`.
std::string ProductText(const Sizes& s, std::string_view name, std::string_view input,
                        std::string_view weights, int64_t depth) {
  return fmt::format("{}[i: {}, j: {}] = sum(k: {}) float32({}[i, k]) * float32({}[{}])\n", name,
                     s.rows, s.columns, depth, input, weights, s.along_depth ? "j, k" : "k, j");
}

std::string WeightsText(const Sizes& s, std::string_view name, int64_t depth) {
  const auto [first, second] =
      s.along_depth ? std::pair(s.columns, depth) : std::pair(depth, s.columns);
  return fmt::format("input {}: {}[{}, {}]\n", name, s.type, first, second);
}

std::string TextOf(Kind kind, const Sizes& s) {
  const int64_t other = kind == Kind::kOfTwoInputs ? s.depth / 2 : s.depth;
  const std::string_view second = kind == Kind::kOfTwoInputs ? "z" : "x";
  std::string text = fmt::format("input x: {}[{}, {}]\n", s.type, s.rows, s.depth);
  if (kind == Kind::kOfTwoInputs)
    text += fmt::format("input z: {}[{}, {}]\n", s.type, s.rows, other);
  text += WeightsText(s, "v", s.depth) + WeightsText(s, "w", other);
  if (kind == Kind::kThree) text += WeightsText(s, "u", s.depth);
  text += ProductText(s, "a", "x", "v", s.depth) + ProductText(s, "b", second, "w", other);
  if (kind == Kind::kThree) text += ProductText(s, "c", "x", "u", s.depth);
  const std::string_view value = kind == Kind::kThree ? "max(a[i, j], 0.0) + b[i, j] + c[i, j]"
                                                      : "max(a[i, j], 0.0) * 0.25 + b[i, j]";
  return text + fmt::format("y[i: {}, j: {}] = {}({})\n", s.rows, s.columns, s.type, value);
}

dag::DagPtr Parse(const std::string& text) {
  const auto dag = dag::ParseDag(text);
  KILN_CHECK(dag.ok(), "{}\n{}", Message(dag.status()), text);
  return *dag;
}

Task TaskOf(const dag::DagPtr& dag) {
  return Task(dag, *target::ParseTarget("cuda -arch=sm_90"), {}, "[]");
}

Sizes SmallSizes(Rng& rng) {
  constexpr std::array<int64_t, 3> kRows = {49, 64, 96};
  constexpr std::array<int64_t, 4> kColumns = {16, 24, 40, 64}, kDepths = {32, 48, 64, 80};
  constexpr std::array<std::string_view, 2> kTypes = {"float16", "bfloat16"};
  return {.rows = PickFrom(rng, kRows),
          .columns = PickFrom(rng, kColumns),
          .depth = PickFrom(rng, kDepths),
          .type = PickFrom(rng, kTypes),
          .along_depth = Chance(rng, 0.5)};
}

// Returns the first samples, of `count`, all of whose products are computed by such units.
std::vector<State> SamplesOf(const Task& task, Kind kind, MatrixUnitScope scope, size_t count,
                             Rng& rng) {
  constexpr int kDraws = 600;
  Parameters parameters;
  parameters.matrix_unit_prob = 1;
  parameters.warpgroup_prob = scope == MatrixUnitScope::kWarpgroup ? 1 : 0;
  const std::vector<Sketch> sketches = GenerateSketches({task, parameters});
  std::vector<State> states;
  for (int draw = 0; draw < kDraws && states.size() < count; ++draw) {
    StatusOr<State> state = SampleGpu(PickFrom(rng, sketches), task, parameters, rng);
    if (!state.ok()) continue;
    const std::vector<int> products = ProductsOfMatrixUnits(*state);
    const bool are_wanted = std::ranges::all_of(
        products, [&](int s) { return ir::MatrixUnitScopeOf(state->stage(s).hints) == scope; });
    if (are_wanted && std::ssize(products) == NumProducts(kind))
      states.push_back(*std::move(state));
  }
  return states;
}

class ProductKinds : public testing::TestWithParam<Kind> {};

// Whole numbers are summed, so the sums are those in float64.
TEST_P(ProductKinds, SamplesComputeWhatTheDagSays) {
  const uint64_t first = EnvironmentOr("KILN_SEED", 1);
  int checked = 0;
  for (uint64_t i = 0; i < 6; ++i) {
    const uint64_t seed = SplitSeed(first * 100 + static_cast<uint64_t>(GetParam()), i);
    Rng rng(seed);
    const std::string text = TextOf(GetParam(), SmallSizes(rng));
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    const Workload workload = MakeWorkload(text, Parse(text), seed);
    const Task task = TaskOf(workload.dag);
    for (const MatrixUnitScope scope : {MatrixUnitScope::kWarp, MatrixUnitScope::kWarpgroup}) {
      for (const State& state : SamplesOf(task, GetParam(), scope, 3, rng)) {
        ++checked;
        ASSERT_OK(CheckByInterpreter(workload, state, /*gpu=*/true));
        ASSERT_OK(codegen::CheckCudaProgram(*lower::Lower(state, {.gpu = true}), task.hardware,
                                            task.target));
      }
    }
  }
  EXPECT_GE(checked, 4);
}

TEST_P(ProductKinds, CudaTextComputesTheSame) {
  const uint64_t first = EnvironmentOr("KILN_SEED", 1);
  for (uint64_t i = 0; i < 2; ++i) {
    const uint64_t seed = SplitSeed(first * 1000 + static_cast<uint64_t>(GetParam()), i);
    Rng rng(seed);
    const std::string text = TextOf(GetParam(), SmallSizes(rng));
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    const Task task = TaskOf(Parse(text));
    for (const auto& [scope, call] :
         {std::pair(MatrixUnitScope::kWarp, "multiply_tiles_"),
          std::pair(MatrixUnitScope::kWarpgroup, "multiply_warpgroup_")}) {
      for (const State& state : SamplesOf(task, GetParam(), scope, 2, rng)) {
        SCOPED_TRACE(schedule::PrintSteps(state.steps()));
        ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
        ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
        EXPECT_THAT(source.text, testing::HasSubstr(call));
        EXPECT_OK(codegen::CompareEmulated(program, seed, 2e-2));
      }
    }
  }
}

std::string NameOf(const testing::TestParamInfo<Kind>& info) {
  constexpr const char* kNames[] = {"Two", "Three", "OfTwoInputs"};
  return kNames[static_cast<size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(All, ProductKinds, testing::ValuesIn(kKinds), NameOf);

}  // namespace
}  // namespace kiln::search
