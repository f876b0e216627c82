// Tests products that are more than one product of two inputs: several of them that one operator
// reads, and such of a factor that an index chooses. Matrix units compute them as they compute the
// plain ones.
//
// KILN_SEED (default 1) chooses the computations. A failure prints the computation, the seed and
// the steps.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
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
#include "device/calibration.h"
#include "search/sampling/sample_gpu.h"
#include "search/space/matrix_product.h"
#include "search/space/sketch.h"
#include "tests/schedules/best_sample.h"
#include "tests/schedules/check_program.h"
#include "tests/schedules/environment.h"

namespace kiln::search {
namespace {

using ir::MatrixUnitScope;
using schedule::State;

// Two products of one input, whose values one operator multiplies; three, which it adds; two of
// different inputs and lengths; products of blocks of rows with one of several matrices each; of
// rows that an index chooses, in an operator before the product or in the product itself.
enum class Kind { kTwo, kThree, kOfTwoInputs, kChosenMatrix, kRowsChosenBefore, kChosenRows };
constexpr std::array kKinds = {Kind::kTwo,
                               Kind::kThree,
                               Kind::kOfTwoInputs,
                               Kind::kChosenMatrix,
                               Kind::kRowsChosenBefore,
                               Kind::kChosenRows};

struct Sizes {
  int64_t rows, columns, depth;
  std::string_view type = "float16";
  bool along_depth = false;  // the weights' neighbours
  int64_t matrices = 4;      // to choose from, and blocks of rows

  int64_t products() const { return rows * columns * depth; }
};

int NumProducts(Kind kind) { return kind == Kind::kThree ? 3 : kind <= Kind::kOfTwoInputs ? 2 : 1; }

// The text of `name` = a product, whose first factor is `element`.
std::string ProductText(const Sizes& s, std::string_view name, std::string_view element,
                        std::string_view weights, int64_t depth) {
  return fmt::format("{}[i: {}, j: {}] = sum(k: {}) float32({}) * float32({}[{}])\n", name, s.rows,
                     s.columns, depth, element, weights, s.along_depth ? "j, k" : "k, j");
}

std::string WeightsText(const Sizes& s, std::string_view name, int64_t depth) {
  const auto [first, second] =
      s.along_depth ? std::pair(s.columns, depth) : std::pair(depth, s.columns);
  return fmt::format("input {}: {}[{}, {}]\n", name, s.type, first, second);
}

std::string TextOfProducts(Kind kind, const Sizes& s) {
  const int64_t other = kind == Kind::kOfTwoInputs ? s.depth / 2 : s.depth;
  const std::string_view second = kind == Kind::kOfTwoInputs ? "z[i, k]" : "x[i, k]";
  std::string text = fmt::format("input x: {}[{}, {}]\n", s.type, s.rows, s.depth);
  if (kind == Kind::kOfTwoInputs)
    text += fmt::format("input z: {}[{}, {}]\n", s.type, s.rows, other);
  text += WeightsText(s, "v", s.depth) + WeightsText(s, "w", other);
  if (kind == Kind::kThree) text += WeightsText(s, "u", s.depth);
  text += ProductText(s, "a", "x[i, k]", "v", s.depth) + ProductText(s, "b", second, "w", other);
  if (kind == Kind::kThree) text += ProductText(s, "c", "x[i, k]", "u", s.depth);
  const std::string_view value = kind == Kind::kThree ? "max(a[i, j], 0.0) + b[i, j] + c[i, j]"
                                                      : "max(a[i, j], 0.0) * 0.25 + b[i, j]";
  return text + fmt::format("y[i: {}, j: {}] = {}({})\n", s.rows, s.columns, s.type, value);
}

std::string TextOfChosenMatrix(const Sizes& s) {
  const auto [first, second] =
      s.along_depth ? std::pair(s.columns, s.depth) : std::pair(s.depth, s.columns);
  return fmt::format(
      "input x: {0}[{1}, {2}, {4}]\ninput e: int32[{1}]\ninput w: {0}[{1}, {5}, {6}]\n"
      "a[h: {1}, i: {2}, j: {3}] = sum(k: {4}) float32(x[h, i, k]) * float32(w[e[h], {7}])\n"
      "y[h: {1}, i: {2}, j: {3}] = {0}(a[h, i, j])\n",
      s.type, s.matrices, s.rows, s.columns, s.depth, first, second,
      s.along_depth ? "j, k" : "k, j");
}

std::string TextOfChosenRows(const Sizes& s, bool are_before) {
  std::string text =
      fmt::format("input x: {}[{}, {}]\ninput e: int32[{}]\n", s.type, 2 * s.rows, s.depth, s.rows);
  if (are_before) text += fmt::format("r[i: {}, k: {}] = x[e[i], k]\n", s.rows, s.depth);
  text += WeightsText(s, "w", s.depth) +
          ProductText(s, "a", are_before ? "r[i, k]" : "x[e[i], k]", "w", s.depth);
  return text + fmt::format("y[i: {}, j: {}] = {}(max(a[i, j], 0.0))\n", s.rows, s.columns, s.type);
}

std::string TextOf(Kind kind, const Sizes& s) {
  if (kind == Kind::kChosenMatrix) return TextOfChosenMatrix(s);
  if (kind >= Kind::kRowsChosenBefore) return TextOfChosenRows(s, kind == Kind::kRowsChosenBefore);
  return TextOfProducts(kind, s);
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
  constexpr std::array<int64_t, 4> kColumns = {32, 40, 64, 128}, kDepths = {64, 80, 96, 128};
  // Units of four warps multiply 64 rows, if there are fewer too.
  constexpr std::array<int64_t, 6> kRows = {16, 24, 64, 96, 100, 128};
  constexpr std::array<std::string_view, 2> kTypes = {"float16", "bfloat16"};
  return {.rows = PickFrom(rng, kRows),
          .columns = PickFrom(rng, kColumns),
          .depth = PickFrom(rng, kDepths),
          .type = PickFrom(rng, kTypes),
          .along_depth = Chance(rng, 0.5),
          .matrices = UniformIn(rng, 2, 4)};
}

// Returns the first samples, of `count`, all of whose products are computed by such units.
std::vector<State> SamplesOf(const Task& task, Kind kind, MatrixUnitScope scope, size_t count,
                             Rng& rng) {
  constexpr int kDraws = 3000;
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
  std::map<MatrixUnitScope, int> checked;
  for (uint64_t i = 0; i < 4; ++i) {
    const uint64_t seed = SplitSeed(first * 100 + static_cast<uint64_t>(GetParam()), i);
    Rng rng(seed);
    const std::string text = TextOf(GetParam(), SmallSizes(rng));
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    const Workload workload = MakeWorkload(text, Parse(text), seed);
    const Task task = TaskOf(workload.dag);
    for (const MatrixUnitScope scope : {MatrixUnitScope::kWarp, MatrixUnitScope::kWarpgroup}) {
      for (const State& state : SamplesOf(task, GetParam(), scope, 2, rng)) {
        ++checked[scope];
        ASSERT_OK(CheckByInterpreter(workload, state, /*gpu=*/true));
        ASSERT_OK(codegen::CheckCudaProgram(*lower::Lower(state, {.gpu = true}), task.hardware,
                                            task.target));
      }
    }
  }
  EXPECT_GE(checked[MatrixUnitScope::kWarp], 4);
  EXPECT_GE(checked[MatrixUnitScope::kWarpgroup], 4);
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
  constexpr const char* kNames[] = {
      "Two", "Three", "OfTwoInputs", "ChosenMatrix", "RowsChosenBefore", "ChosenRows"};
  return kNames[static_cast<size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(All, ProductKinds, testing::ValuesIn(kKinds), NameOf);

// ---- how fast they are, by the analytic model with the constants of an H200

// Each kernel waits for the memory, for a barrier or two, and for its first tiles.
constexpr double kLeastSeconds = 4e-6;

// Products that threads compute take more than ten times as long, where the bytes are not the
// limit. The worst ones here are two products of different inputs, of 1024 rows and columns.
constexpr double kMost = 3;

// The limit is the bytes of inputs and outputs over the rate at which the model's device reads, and
// the products over that of its matrix units.
double LimitOf(const Task& task, Kind kind, const Sizes& s) {
  constexpr double kProductsInACycle = 16 * 128;  // of a multiprocessor
  const device::Calibration row = device::CalibrationOf(task.device).row;
  const int64_t times = kind == Kind::kChosenMatrix ? s.matrices : 1,
                matrices = std::max<int64_t>(times, NumProducts(kind));
  const auto bytes = static_cast<double>(
      2 * (matrices * s.depth * s.columns + times * s.rows * (s.depth + s.columns)));
  const auto products =
      static_cast<double>(std::max<int64_t>(times, NumProducts(kind)) * s.products());
  return bytes / (row.l2_bytes_per_cycle * row.clock_hz) +
         products / (kProductsInACycle * task.device.multiprocessors * row.clock_hz) +
         NumProducts(kind) * kLeastSeconds;
}

TEST(ProductKindsInTime, AreAsFastAsTheirBytesAndProducts) {
  constexpr std::array<int64_t, 5> kRows = {16, 64, 128, 256, 1024};
  constexpr std::array<int64_t, 7> kOthers = {256, 512, 1024, 1536, 2048, 4096, 11008};
  const uint64_t first = EnvironmentOr("KILN_SEED", 1);
  for (uint64_t i = 0; i < 40; ++i) {
    const uint64_t seed = SplitSeed(first, i);
    Rng rng(seed);
    const Kind kind = PickFrom(rng, kKinds);
    Sizes sizes = {.rows = PickFrom(rng, kRows),
                   .columns = PickFrom(rng, kOthers),
                   .depth = PickFrom(rng, kOthers),
                   .along_depth = Chance(rng, 0.5),
                   .matrices = 8};
    // The copy engine does not bring rows that an index chooses.
    if (kind >= Kind::kRowsChosenBefore) continue;
    const std::string text = TextOf(kind, sizes);
    const Task task(Parse(text), *target::ParseTarget("cuda -arch=sm_90"), {}, "[]");
    const double best = BestSampleSeconds(task, 512, rng), limit = LimitOf(task, kind, sizes);
    EXPECT_LE(best, kMost * limit)
        << "seed " << seed << ", " << best / limit << " times the limit\n"
        << text;
  }
}

}  // namespace
}  // namespace kiln::search
