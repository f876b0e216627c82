// Tests several products of one factor that one stage computes, as the search samples them: what
// they compute as a program and as CUDA text, by units of one warp and of four, with bulk copies,
// pairs of blocks and persistent blocks, what the assembler makes of them, and whether a search
// proposes them.
//
// KILN_SEED (default 1) chooses computations and candidates. A failure prints the computation, the
// seed and the steps.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/numbers/rng.h"
#include "base/status_testing.h"
#include "compiler/codegen/cuda/checks.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/dag/text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/steps.h"
#include "search/policies/policy.h"
#include "search/space/bulk_copies.h"
#include "search/space/matrix_product.h"
#include "tests/schedules/check_program.h"
#include "tests/schedules/environment.h"
#include "tests/schedules/matrix_candidates.h"

namespace kiln::search {
namespace {

using ir::MatrixUnitScope;
using schedule::State;

struct Sizes {
  int64_t rows, columns, depth;
  std::string_view type = "float16";
  bool along_depth = false;  // the weights' neighbours
  int products = 2;
};

std::string TextOf(const Sizes& s) {
  std::string text = fmt::format("input x: {}[{}, {}]\n", s.type, s.rows, s.depth), value;
  const auto [first, second] =
      s.along_depth ? std::pair(s.columns, s.depth) : std::pair(s.depth, s.columns);
  for (int p = 0; p < s.products; ++p)
    text += fmt::format("input w{}: {}[{}, {}]\n", p, s.type, first, second);
  for (int p = 0; p < s.products; ++p) {
    text +=
        fmt::format("a{0}[i: {1}, j: {2}] = sum(k: {3}) float32(x[i, k]) * float32(w{0}[{4}])\n", p,
                    s.rows, s.columns, s.depth, s.along_depth ? "j, k" : "k, j");
    value += fmt::format("{}max(a{}[i, j], {}.0)", p == 0 ? "" : " + ", p, -p);
  }
  return text +
         fmt::format("y[i: {}, j: {}] = {}(0.25 * ({}))\n", s.rows, s.columns, s.type, value);
}

dag::DagPtr Parse(const std::string& text) {
  const auto dag = dag::ParseDag(text);
  KILN_CHECK(dag.ok(), "{}\n{}", Message(dag.status()), text);
  return *dag;
}

Task TaskOf(const dag::DagPtr& dag) {
  return Task(dag, *target::ParseTarget("cuda -arch=sm_90"), {}, "[]");
}

bool AreJoined(std::span<const schedule::StepPtr> steps) {
  return std::ranges::any_of(steps, [](const schedule::StepPtr& step) {
    const auto* write = schedule::As<schedule::CacheWriteStep>(*step);
    return write != nullptr && !write->joined.empty();
  });
}

std::vector<Sketch> JoinedSketches(const Task& task, const Parameters& parameters) {
  std::vector<Sketch> sketches = GenerateSketches({task, parameters});
  std::erase_if(sketches, [](const Sketch& sketch) { return !AreJoined(sketch.steps); });
  return sketches;
}

std::vector<State> SamplesOf(const Task& task, MatrixUnitScope scope, uint64_t seed, size_t count,
                             const std::function<bool(const State&)>& accepts) {
  Parameters parameters;
  parameters.matrix_unit_prob = 1;
  parameters.warpgroup_prob = scope == MatrixUnitScope::kWarpgroup ? 1 : 0;
  return MatrixCandidates(
      task, JoinedSketches(task, parameters), parameters, seed, 400, count,
      [&](const State& state) { return UnitOf(state) == scope && accepts(state); });
}

bool IsAny(const State&) { return true; }

int32_t HintOf(const State& state, ir::Hint hint) {
  int32_t most = 0;
  for (int s = 0; s < state.num_stages(); ++s) most = std::max(most, state.stage(s).hints[hint]);
  return most;
}

Sizes SmallSizes(Rng& rng) {
  constexpr std::array<int64_t, 4> kColumns = {32, 40, 64, 128}, kDepths = {64, 80, 96, 128};
  constexpr std::array<int64_t, 6> kRows = {16, 24, 64, 96, 100, 128};
  constexpr std::array<std::string_view, 2> kTypes = {"float16", "bfloat16"};
  return {.rows = PickFrom(rng, kRows),
          .columns = PickFrom(rng, kColumns),
          .depth = PickFrom(rng, kDepths),
          .type = PickFrom(rng, kTypes),
          .along_depth = Chance(rng, 0.5),
          .products = Chance(rng, 0.75) ? 2 : 3};
}

constexpr std::array kScopes = {MatrixUnitScope::kWarp, MatrixUnitScope::kWarpgroup};

// Whole numbers are summed, so the sums are those in float64.
TEST(JoinedSums, SamplesComputeWhatTheDagSays) {
  const uint64_t first = EnvironmentOr("KILN_SEED", 1);
  std::map<MatrixUnitScope, int> checked;
  for (uint64_t i = 0; i < 4; ++i) {
    const uint64_t seed = SplitSeed(first, i);
    Rng rng(seed);
    const std::string text = TextOf(SmallSizes(rng));
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    const Workload workload = MakeWorkload(text, Parse(text), seed);
    const Task task = TaskOf(workload.dag);
    for (const MatrixUnitScope scope : kScopes) {
      for (const State& state : SamplesOf(task, scope, seed, 2, IsAny)) {
        ++checked[scope];
        ASSERT_OK(CheckByInterpreter(workload, state, /*gpu=*/true));
        ASSERT_OK(codegen::CheckCudaProgram(*lower::Lower(state, {.gpu = true}), task.hardware,
                                            task.target));
      }
    }
  }
  for (const MatrixUnitScope scope : kScopes) EXPECT_GE(checked[scope], 5);
}

// Checks the text, and what the assembler says of it where there is one.
void ExpectRight(const State& state, std::string_view call, uint64_t seed) {
  SCOPED_TRACE(schedule::PrintSteps(state.steps()));
  ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
  ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
  EXPECT_THAT(source.text, testing::HasSubstr(call));
  ASSERT_OK(codegen::CompareEmulated(program, seed, 2e-2));
  if (!codegen::FindNvrtc().ok()) return;
  ASSERT_OK_AND_ASSIGN(const codegen::Cubin cubin, codegen::CompileSource(source, "sm_90"));
  // The log says so if products wait for each other.
  EXPECT_EQ(cubin.log, "");
}

TEST(JoinedSums, CudaTextComputesTheSame) {
  const uint64_t first = EnvironmentOr("KILN_SEED", 1);
  for (uint64_t i = 0; i < 2; ++i) {
    const uint64_t seed = SplitSeed(first + 100, i);
    Rng rng(seed);
    const std::string text = TextOf(SmallSizes(rng));
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    const Task task = TaskOf(Parse(text));
    for (const auto& [scope, call] :
         {std::pair(MatrixUnitScope::kWarp, "multiply_tiles_"),
          std::pair(MatrixUnitScope::kWarpgroup, "multiply_warpgroup_")}) {
      const std::vector<State> states = SamplesOf(task, scope, seed, 3, IsAny);
      EXPECT_GE(states.size(), 2u);
      for (const State& state : states) ExpectRight(state, call, seed);
    }
  }
}

// Two rows and two columns of tiles, so that blocks may be pairs.
TEST(JoinedSums, BulkCopiesBringTheTilesOfAllFactors) {
  for (const bool along_depth : {false, true}) {
    const Sizes sizes = {
        .rows = 256, .columns = 256, .depth = 128, .along_depth = along_depth, .products = 2};
    const Task task = TaskOf(Parse(TextOf(sizes)));
    const uint64_t seed = EnvironmentOr("KILN_SEED", 1);
    for (const int32_t value : {1, 2}) {
      SCOPED_TRACE(fmt::format("along_depth {}, bulk copies {}", along_depth, value));
      const std::vector<State> states = SamplesOf(
          task, MatrixUnitScope::kWarpgroup, seed, 3,
          [&](const State& state) { return HintOf(state, ir::Hint::kBulkCopies) == value; });
      EXPECT_GE(states.size(), 2u);
      for (const State& state : states)
        ExpectRight(state, value == 2 ? "copy_box_to_pair(" : "copy_box(", seed);
    }
  }
}

// Two blocks compute all tiles. Sums of several arrays are not streamed.
TEST(JoinedSums, PersistentBlocksGoFromTileToTile) {
  const Task task = TaskOf(Parse(TextOf({.rows = 256, .columns = 384, .depth = 256})));
  const uint64_t seed = EnvironmentOr("KILN_SEED", 1);
  int found = 0;
  for (const State& state :
       SamplesOf(task, MatrixUnitScope::kWarpgroup, seed, 40,
                 [](const State& s) { return HintOf(s, ir::Hint::kBulkCopies) > 0; })) {
    const int root = RootsOfMatrixUnits(state).at(0);
    EXPECT_FALSE(CanStream(state, root));
    if (!CanPersist(state, root, 2)) continue;
    std::vector<schedule::StepPtr> steps = state.steps();
    steps.push_back(schedule::HintStep(root, ir::Hint::kPersistentBlocks, 2));
    ASSERT_OK_AND_ASSIGN(const State persistent, schedule::Replay(task.dag, steps, task.stop));
    ExpectRight(persistent, "for (int number = blockIdx.x", seed);
    if (++found == 2) break;
  }
  EXPECT_GE(found, 1);
}

std::string TextOfGate(int64_t rows, int64_t columns, int64_t depth) {
  return fmt::format(
      "input x: float16[{0}, {2}]\ninput v: float16[{2}, {1}]\ninput w: float16[{2}, {1}]\n"
      "g[i: {0}, j: {1}] = sum(k: {2}) float32(x[i, k]) * float32(v[k, j])\n"
      "u[i: {0}, j: {1}] = sum(k: {2}) float32(x[i, k]) * float32(w[k, j])\n"
      "y[i: {0}, j: {1}] = float16(g[i, j] / (1.0 + exp(-g[i, j])) * u[i, j])\n",
      rows, columns, depth);
}

// The analytic model ranks, with the constants of an H200.
TEST(JoinedSums, AreWhatASearchProposesFirst) {
  for (const int64_t rows : {16, 128, 1024}) {
    SCOPED_TRACE(rows);
    const Task task = TaskOf(Parse(TextOfGate(rows, 11008, 4096)));
    ASSERT_OK_AND_ASSIGN(const Models models, MakeModels("sketch.analytic", 1));
    ASSERT_OK_AND_ASSIGN(const auto policy,
                         MakePolicy("sketch.analytic", task, EnvironmentOr("KILN_SEED", 1),
                                    {.models = models, .threads = 1}));
    ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> candidates, policy->Propose(16));
    ASSERT_FALSE(candidates.empty());
    const auto best = std::ranges::max_element(candidates, {}, [](const Candidate& candidate) {
      return candidate.score == kNoScore ? -1e9 : candidate.score;
    });
    EXPECT_TRUE(AreJoined(best->steps)) << schedule::PrintSteps(best->steps);
  }
}

TEST(JoinedSums, AreJoinedWhereAllProductsHaveOneFactorAndOneReader) {
  const std::string two = TextOf({.rows = 64, .columns = 64, .depth = 64});
  std::string others = two;
  others.replace(others.find("x[i, k]", others.find("a1[")), 7, "z[i, k]");
  const std::string of_two_factors = "input z: float16[64, 64]\n" + others,
                    of_two_readers = two + "t[i: 64, j: 64] = a0[i, j] + 1.0\n";
  Parameters without;
  without.joined_sums = false;
  const auto count = [](const std::string& text, const Parameters& parameters) {
    return JoinedSketches(TaskOf(Parse(text)), parameters).size();
  };
  EXPECT_GT(count(two, Parameters()), 0u);
  EXPECT_EQ(count(two, without), 0u);
  EXPECT_EQ(count(of_two_factors, Parameters()), 0u);
  EXPECT_EQ(count(of_two_readers, Parameters()), 0u);
}

}  // namespace
}  // namespace kiln::search
