// Whole programs, as text. testdata/*.txt hold a computation, steps, and the program that they
// lower to.
//
// After an intended change, refresh the files and read the difference:
//   KILN_UPDATE_GOLDEN=1 bazel run //compiler/lower:nest_test && git diff compiler/lower/testdata
#include "compiler/lower/nest.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/status_testing.h"
#include "compiler/dag/evaluate.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/lower/state_testing.h"

namespace kiln::lower {
namespace {

constexpr std::string_view kFolder = "compiler/lower/testdata";

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  KILN_CHECK(file.good(), "cannot read {}", path.string());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// "--- NAME" lines start the sections. Text before the first section is a comment.
struct Golden {
  // The text up to and including the line "--- program".
  std::string head;
  std::string dag, steps, program;
};

Golden ParseGolden(const std::string& text) {
  const auto find = [&](std::string_view marker) {
    const size_t at = text.find(marker);
    KILN_CHECK(at != std::string::npos, "no line {}", marker);
    return at;
  };
  constexpr std::string_view kDag = "--- dag\n", kSteps = "--- steps\n", kProgram = "--- program\n";
  const size_t dag = find(kDag), steps = find(kSteps), program = find(kProgram);
  const size_t dag_from = dag + kDag.size(), steps_from = steps + kSteps.size();
  const size_t program_from = program + kProgram.size();
  return {text.substr(0, program_from), text.substr(dag_from, steps - dag_from),
          text.substr(steps_from, program - steps_from), text.substr(program_from)};
}

std::vector<std::string> GoldenNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Returns the folder to update if an update is asked for. `bazel run` tells the source tree.
std::optional<std::filesystem::path> FolderToUpdate() {
  const char* root = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (std::getenv("KILN_UPDATE_GOLDEN") == nullptr) return std::nullopt;
  KILN_CHECK(root != nullptr, "golden files are refreshed by `bazel run`, not by `bazel test`");
  return std::filesystem::path(root) / kFolder;
}

// Runs the program on small whole numbers and compares the results with those of the computation.
void ExpectComputes(const dag::Dag& dag, const ir::Program& program) {
  std::vector<ir::NDArray> inputs = dag::RandomInputs(dag, 1, ir::RandomKind::kSmallIntegers);
  ASSERT_OK_AND_ASSIGN(const std::vector<ir::NDArray> want, dag::Evaluate(dag, inputs));
  std::vector<ir::NDArray> outputs;
  for (const ir::NDArray& array : want) {
    outputs.emplace_back(array.type(), array.shape());
    outputs.back().Poison();
  }
  std::vector<ir::NDArray*> arguments;
  for (ir::NDArray& a : inputs) arguments.push_back(&a);
  for (ir::NDArray& a : outputs) arguments.push_back(&a);
  ASSERT_OK(ir::Interpret(program, arguments));
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_OK(ir::Compare(outputs[i], want[i], ir::DefaultTolerance(want[i].type()),
                          fmt::format("output {}", i)));
  }
}

class GoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(GoldenTest, LowersToTheTextInTheFile) {
  const std::string file = GetParam() + ".txt";
  const Golden golden = ParseGolden(ReadFile(std::filesystem::path(kFolder) / file));
  const schedule::State state = StateFrom(golden.dag, golden.steps);
  ASSERT_OK_AND_ASSIGN(const ir::Program program, Lower(state, {}));
  ASSERT_OK(ir::Verify(program));
  const std::string text = ir::ProgramText(program);

  // The text parses back to the program, and the program computes the right values.
  ASSERT_OK_AND_ASSIGN(const ir::Program parsed, ir::ParseProgram(text));
  EXPECT_TRUE(ir::Equal(program, parsed)) << text;
  ExpectComputes(*state.initial_dag(), program);

  if (const auto folder = FolderToUpdate()) {
    std::ofstream(*folder / file) << golden.head << text;
    return;
  }
  EXPECT_EQ(text, golden.program) << file
                                  << ": if the new text is what it should be, refresh the file:\n"
                                  << "  KILN_UPDATE_GOLDEN=1 bazel run //compiler/lower:nest_test";
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTest, testing::ValuesIn(GoldenNames()),
                         [](const auto& info) { return info.param; });

TEST(Nest, TheSameStateGivesTheSameText) {
  const Golden golden =
      ParseGolden(ReadFile(std::filesystem::path(kFolder) / "conv_bias_relu.txt"));
  const schedule::State state = StateFrom(golden.dag, golden.steps);
  ASSERT_OK_AND_ASSIGN(const ir::Program a, Lower(state, {}));
  ASSERT_OK_AND_ASSIGN(const ir::Program b, Lower(state, {}));
  EXPECT_EQ(ir::ProgramText(a), ir::ProgramText(b));
}

// A matmul of 13 x 19 and 19 x 17 in tiles of 8 x 8 x 4, fetched into shared memory.
schedule::State UnevenTiles(std::string_view reduction) {
  return StateFrom(
      fmt::format(R"(
      input A: float32[13, 19]
      input B: float32[19, 17]
      C[i: 13, j: 17] = {})",
                  reduction),
      R"([["CHW", 2, "local"], ["SP", 2, 0, 13, [1, 4, 1, 2], 1],)"
      R"( ["SP", 2, 5, 17, [1, 4, 1, 2], 1], ["SP", 2, 10, 19, [2, 2], 1],)"
      R"( ["RE", 2, [0, 5, 1, 6, 2, 7, 10, 11, 3, 8, 12, 4, 9]],)"
      R"( ["FSP", 3, 0, 1, 3], ["FSP", 3, 4, 2, 3], ["RE", 3, [0, 4, 1, 5, 2, 6, 3, 7]],)"
      R"( ["CA", 2, 3, 5], ["CHR", 1, "shared", [2]], ["CA", 2, 3, 6],)"
      R"( ["CHR", 0, "shared", [3]], ["CA", 1, 4, 6], ["FU", 5, [0, 1]], ["AN", 5, 0, 5],)"
      R"( ["FU", 5, [1, 2]], ["AN", 5, 1, 4], ["FU", 5, [2, 3]], ["AN", 5, 2, 6],)"
      R"( ["FU", 3, [0, 1]], ["FFSP", 3, 0, [2, 1], 1, 1], ["AN", 3, 1, 6],)"
      R"( ["FU", 1, [0, 1]], ["FFSP", 1, 0, [2, 1], 1, 1], ["AN", 1, 1, 6]])");
}

// Returns true if any buffer but the output is stored under a condition.
bool GuardsTiles(const ir::Program& program, ir::Stmt s, bool guarded) {
  if (s->kind == ir::StmtKind::kStore)
    return guarded && program.buffers[s->slot].scope != ir::Scope::kOutput;
  guarded = guarded || s->kind == ir::StmtKind::kIf;
  return std::ranges::any_of(s->children(),
                             [&](ir::Stmt child) { return GuardsTiles(program, child, guarded); });
}

TEST(GpuGuards, TilesThatStickOutAreZerosAndComputedWhole) {
  const schedule::State state = UnevenTiles("sum(k: 19) A[i, k] * B[k, j]");
  for (const char* depth : {"1", "2"}) {
    schedule::State deep = state;
    ASSERT_OK_AND_ASSIGN(const auto steps,
                         schedule::ParseSteps(fmt::format(R"([["BF", 4, {}]])", depth)));
    ASSERT_OK(deep.Apply(steps[0]));
    ASSERT_OK_AND_ASSIGN(const ir::Program program, Lower(deep, {.gpu = true}));
    ASSERT_OK(ir::Verify(program));
    ExpectComputes(*state.initial_dag(), program);
    const std::string text = ir::ProgramText(program);
    EXPECT_NE(text.find(", 0.0) @ A_shared"), std::string::npos) << text;
    // Tiles that are fetched ahead are stored under a condition.
    if (std::string_view(depth) == "2") continue;
    EXPECT_FALSE(GuardsTiles(program, program.kernels[0].body, false)) << text;
  }
}

// An additional zero changes a maximum, and a sum of terms that are 1 for zeros.
TEST(GpuGuards, ReductionsThatZerosChangeAreGuarded) {
  for (const char* reduction : {"max(k: 19) A[i, k] * B[k, j]", "sum(k: 19) exp(A[i, k] * B[k, j])",
                                "sum(k: 19) A[i, 18 - k] * B[k, j]"}) {
    const schedule::State state = UnevenTiles(reduction);
    ASSERT_OK_AND_ASSIGN(const ir::Program program, Lower(state, {.gpu = true}));
    ASSERT_OK(ir::Verify(program));
    ExpectComputes(*state.initial_dag(), program);
    EXPECT_TRUE(GuardsTiles(program, program.kernels[0].body, false)) << ir::ProgramText(program);
  }
}

// Partial sums of two stretches of k in the shared memory of two blocks, which divide the 24
// elements of a tile between them.
constexpr std::string_view kClusterDag = R"(
    input A: float32[8, 16]
    input B: float32[16, 12]
    C[i: 8, j: 12] = sum(k: 16) A[i, k] * B[k, j]
    D[i: 8, j: 12] = max(C[i, j], 0.0))";
// The stages are then 2 C.rf, 3 C, 4 D.
std::string ClusterSteps(std::string_view parts, std::string_view elements, std::string_view at) {
  return fmt::format(
      R"([["SP", 2, 2, 16, [2], 0], ["RF", 2, 2, 0], ["SP", 4, 0, 8, [4], 1],)"
      R"( ["SP", 4, 2, 12, [6], 1], ["RE", 4, [0, 2, 1, 3]], ["FU", 4, [0, 1]],)"
      R"( ["FU", 4, [1, 2]], ["SP", 4, 1, 24, [4], 1], ["SP", 4, 1, 6, [2], 1], ["AN", 4, 0, 5],)"
      R"( {} ["AN", 4, 3, 6], ["CA", 2, 4, {}], ["CA", 3, 4, 3], ["FU", 2, [1, 2]],)"
      R"( ["SP", 2, 1, 24, [4], 1], ["AN", 2, 2, 6], {}])",
      elements, at, parts);
}

TEST(Clusters, BlocksShareAReductionOut) {
  const schedule::State state =
      StateFrom(kClusterDag, ClusterSteps(R"(["AN", 2, 0, 12])", R"(["AN", 4, 2, 12],)", "0"));
  ASSERT_OK_AND_ASSIGN(const ir::Program program, Lower(state, {.gpu = true}));
  ASSERT_OK(ir::Verify(program));
  ExpectComputes(*state.initial_dag(), program);
  ASSERT_EQ(program.kernels.size(), 1u);
  EXPECT_EQ(program.kernels[0].cluster, 2);
  const std::string text = ir::ProgramText(program);
  EXPECT_NE(text.find("kernel D grid [4, 1, 1] block [4, 1, 1] cluster 2 {"), std::string::npos);
  EXPECT_NE(text.find("alloc C_rf: cluster float32[2, 4, 6]"), std::string::npos) << text;
  // A thread's three sums come before its three stores.
  EXPECT_NE(text.find("alloc C: local float32[3, 1, 1]"), std::string::npos) << text;
  EXPECT_GT(text.find("@ D\n"), text.rfind("C_rf[")) << text;
}

TEST(Clusters, WhatMeansNothingIsRefused) {
  const auto says = [](std::string_view parts, std::string_view elements, std::string_view at) {
    const schedule::State state = StateFrom(kClusterDag, ClusterSteps(parts, elements, at));
    return std::string(Message(Lower(state, {.gpu = true}).status()));
  };
  constexpr std::string_view kParts = R"(["AN", 2, 0, 12])", kElements = R"(["AN", 4, 2, 12],)";
  EXPECT_THAT(says(kParts, "", "0"),
              testing::HasSubstr("stage 4 (D) has no loop over the blocks of a cluster"));
  EXPECT_THAT(says(R"(["SP", 2, 0, 2, [2], 1], ["AN", 2, 1, 12])", kElements, "0"),
              testing::HasSubstr("another loop out than its first axis"));
  EXPECT_THAT(says(kParts, kElements, "2"), testing::HasSubstr("and one around it already"));
  EXPECT_THAT(says(kParts, "", "3"), testing::HasSubstr("each thread computes it for itself"));
}

// D reads C, which is computed in its loop i.
TEST(Hints, ReachThePrograms) {
  for (const ir::HintRow& row : ir::kHints) {
    for (const int set : {2, 3}) {
      SCOPED_TRACE(fmt::format("{} of stage {}", row.word, set));
      const int32_t value = std::min(2, row.most);
      const schedule::State state = StateFrom(
          R"(
          input A: float32[8, 16]
          input B: float32[16, 12]
          C[i: 8, j: 12] = sum(k: 16) A[i, k] * B[k, j]
          D[i: 8, j: 12] = max(C[i, j], 0.0))",
          fmt::format(R"([["CA", 2, 3, 0], ["PR", {}, 0, "{}${}"]])", set, row.pragma, value));
      for (const bool gpu : {false, true}) {
        ASSERT_OK_AND_ASSIGN(const ir::Program program, Lower(state, {.gpu = gpu}));
        ASSERT_OK(ir::Verify(program));
        ASSERT_OK_AND_ASSIGN(const ir::Program parsed, ir::ParseProgram(ir::ProgramText(program)));
        EXPECT_TRUE(ir::Equal(program, parsed));
        const int32_t expected = row.is_gpu_only && !gpu ? 0 : value;
        const bool of_stage = row.place == ir::HintPlace::kStage;
        ir::Hints c, d, kernel;
        if (of_stage) {
          if (set == 2 || row.is_inherited) c[row.hint] = expected;
          if (set == 3) d[row.hint] = expected;
        } else if (set == 3) {
          kernel[row.hint] = expected;
        }
        EXPECT_EQ(program.stages[2].hints, c);
        EXPECT_EQ(program.stages[3].hints, d);
        ASSERT_EQ(program.kernels.size(), 1u);
        EXPECT_EQ(program.kernels[0].hints, kernel);
      }
    }
  }
}

TEST(FillExtents, OfAttachedStagesAreThoseOfTheirRegions) {
  const schedule::State state = StateFrom(R"(
      input data: float32[14]
      input w: float32[3]
      pad[x: 16] = if(x >= 1 && x < 15, data[x - 1], 0.0)
      conv[x: 14] = sum(r: 3) pad[x + r] * w[r])",
                                          R"([["SP", 3, 0, 14, [4], 1], ["CA", 1, 3, 0]])");
  EXPECT_EQ(state.stage(1).loop(0).extent, schedule::kUnknownExtent);
  ASSERT_OK_AND_ASSIGN(const schedule::State filled, FillExtents(state));
  EXPECT_EQ(filled.stage(1).loop(0).extent, 6);
  EXPECT_EQ(filled.stage(3).loop(0).extent, 4);
}

}  // namespace
}  // namespace kiln::lower
