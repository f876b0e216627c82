#include "compiler/lower/packed_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/status_testing.h"
#include "compiler/dag/evaluate.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/lower/state_testing.h"

namespace kiln::lower {
namespace {

using testing::HasSubstr;

constexpr std::string_view kMatmul =
    "input A: float32[4, 8]\n"
    "input B: float32[8, 12]\n"
    "@packed_placeholders(B)\n"
    "C[i: 4, j: 12] = sum(k: 8) A[i, k] * B[k, j]\n";

ir::Program Lowered(const schedule::State& state, bool gpu = false) {
  StatusOr<ir::Program> program = Lower(state, {.gpu = gpu});
  KILN_CHECK(program.ok(), "{}", Message(program.status()));
  return *std::move(program);
}

// Returns "packed shape of plain shape by steps", or "plain".
std::string LayoutOf(const ir::Program& program, std::string_view input) {
  for (const ir::Buffer& buffer : program.buffers) {
    if (buffer.name != input) continue;
    if (!buffer.packing) return "plain";
    return fmt::format("{} of {}", ir::ShapeText(buffer.shape), PackingText(*buffer.packing));
  }
  return "no such buffer";
}

std::string LayoutOf(std::string_view dag, std::string_view steps, std::string_view input = "B") {
  return LayoutOf(Lowered(StateFrom(dag, steps)), input);
}

// Packs the inputs that are taken packed, runs the program and compares with the oracle.
Status Check(const schedule::State& state) {
  const ir::Program program = Lowered(state);
  const std::vector<ir::NDArray> inputs =
      dag::RandomInputs(*state.initial_dag(), 1, ir::RandomKind::kSmallIntegers);
  KILN_ASSIGN_OR_RETURN(const auto want, dag::Evaluate(*state.initial_dag(), inputs));
  std::vector<ir::NDArray> arrays = inputs;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const ir::Buffer& buffer = program.buffers[i];
    if (!buffer.packing) continue;
    ir::NDArray packed(buffer.type, buffer.shape);
    Pack(*buffer.packing, buffer.type.bytes(), arrays[i].bytes(), packed.mutable_bytes());
    arrays[i] = std::move(packed);
  }
  for (const ir::NDArray& output : want)
    arrays.emplace_back(output.type(), output.shape()).Poison();
  std::vector<ir::NDArray*> arguments;
  for (ir::NDArray& array : arrays) arguments.push_back(&array);
  KILN_RETURN_IF_ERROR(ir::Interpret(program, arguments));
  for (size_t i = 0; i < want.size(); ++i) {
    KILN_RETURN_IF_ERROR(
        Annotate(ir::Compare(arrays[inputs.size() + i], want[i], {}), ir::ProgramText(program)));
  }
  return OkStatus();
}

TEST(PackedLayoutTest, LoopsThatIndexTheInputInTheirOrder) {
  EXPECT_EQ(LayoutOf(kMatmul, R"([["SP", 2, 2, 8, [4], 1], ["SP", 2, 1, 12, [4], 1],
                                  ["RE", 2, [1, 3, 0, 4, 2]]])"),
            "[3, 2, 4, 4] of [8, 12] by [1: 4, 0: 4, 0: 1, 1: 1]");
  // The order is that of the loops as they were split and ordered, whatever their names: k inside
  // of j.
  EXPECT_EQ(LayoutOf(kMatmul, R"([["RE", 2, [1, 0, 2]]])"), "[12, 8] of [8, 12] by [1: 1, 0: 1]");
}

TEST(PackedLayoutTest, IndicesAreTheLoops) {
  const std::string text = ir::ProgramText(Lowered(StateFrom(
      kMatmul, R"([["SP", 2, 1, 12, [4], 1], ["RE", 2, [1, 0, 3, 2]], ["AN", 2, 3, 2]])")));
  EXPECT_THAT(text, HasSubstr("A[i, k]*B[j_0, k, j_1]")) << text;
  EXPECT_THAT(text, HasSubstr("B: input float32[3, 8, 4] packed of [8, 12] by [1: 4, 0: 1, 1: 1]"));
}

TEST(PackedLayoutTest, FusedLoopsCountAsWhatTheyWereMadeOf) {
  EXPECT_EQ(LayoutOf(kMatmul, R"([["SP", 2, 1, 12, [3, 2], 1], ["FU", 2, [0, 1]],
                                  ["RE", 2, [0, 1, 3, 2]], ["AN", 2, 0, 3]])"),
            "[2, 3, 8, 2] of [8, 12] by [1: 6, 1: 2, 0: 1, 1: 1]");
  // Several parts of one fused loop, the slowest one first.
  constexpr std::string_view kBatch =
      "input A: float32[5, 4, 8]\ninput B: float32[5, 8, 12]\n"
      "@packed_placeholders(B)\n"
      "C[b: 5, i: 4, j: 12] = sum(k: 8) A[b, i, k] * B[b, k, j]\n";
  constexpr std::string_view kSteps = R"([["SP", 2, 2, 12, [4], 1], ["RE", 2, [0, 2, 1, 4, 3]],
                                          ["FU", 2, [0, 1, 2]], ["AN", 2, 0, 3]])";
  EXPECT_EQ(LayoutOf(kBatch, kSteps), "[5, 3, 8, 4] of [5, 8, 12] by [0: 1, 2: 4, 1: 1, 2: 1]");
  EXPECT_OK(Check(StateFrom(kBatch, kSteps)));
}

TEST(PackedLayoutTest, LoopsThatTheStageIsAttachedInComeFirst) {
  // Tiles of D, with C inside of them.
  constexpr std::string_view kRelu =
      "input A: float32[4, 8]\ninput B: float32[8, 12]\n"
      "@packed_placeholders(B)\n"
      "C[i: 4, j: 12] = sum(k: 8) A[i, k] * B[k, j]\n"
      "D[i: 4, j: 12] = max(C[i, j], 0.0)\n";
  constexpr std::string_view kSteps =
      R"([["SP", 3, 1, 12, [4], 1], ["RE", 3, [1, 0, 2]], ["CA", 2, 3, 1], ["RE", 2, [2, 0, 1]]])";
  EXPECT_EQ(LayoutOf(kRelu, kSteps), "[3, 8, 4] of [8, 12] by [1: 4, 0: 1, 1: 1]");
  EXPECT_OK(Check(StateFrom(kRelu, kSteps)));
}

TEST(PackedLayoutTest, TailsArePadded) {
  constexpr std::string_view kSteps = R"([["SP", 2, 1, 12, [5], 1], ["RE", 2, [1, 0, 3, 2]]])";
  EXPECT_EQ(LayoutOf(kMatmul, kSteps), "[3, 8, 5] of [8, 12] by [1: 5, 0: 1, 1: 1]");
  EXPECT_OK(Check(StateFrom(kMatmul, kSteps)));
}

TEST(PackedLayoutTest, WhatReadsACopyReadsThat) {
  constexpr std::string_view kSteps =
      R"([["CHR", 1, "shared", [2]], ["CA", 2, 3, 1], ["RE", 3, [0, 1, 2]], ["RE", 2, [1, 0]]])";
  EXPECT_EQ(LayoutOf(kMatmul, kSteps), "[12, 8] of [8, 12] by [1: 1, 0: 1]");
  EXPECT_OK(Check(StateFrom(kMatmul, kSteps)));
}

TEST(PackedLayoutTest, PartialSums) {
  constexpr std::string_view kSteps =
      R"([["SP", 2, 2, 8, [4], 1], ["RF", 2, 3, 2], ["RE", 2, [2, 0, 1, 3]]])";
  EXPECT_OK(Check(StateFrom(kMatmul, kSteps)));
  EXPECT_NE(LayoutOf(kMatmul, kSteps), "plain");
}

TEST(PackedLayoutTest, WithoutStepsOrOnAGpuInputsStayAsTheyAre) {
  EXPECT_EQ(LayoutOf(kMatmul, "[]"), "plain");
  EXPECT_EQ(LayoutOf(Lowered(StateFrom(kMatmul, R"([["RE", 2, [1, 0, 2]]])"), /*gpu=*/true), "B"),
            "plain");
  // No attribute asks for a packed input.
  EXPECT_EQ(LayoutOf("input A: float32[4, 8]\ninput B: float32[8, 12]\n"
                     "@layout_free_placeholders(B)\n"
                     "C[i: 4, j: 12] = sum(k: 8) A[i, k] * B[k, j]\n",
                     R"([["RE", 2, [1, 0, 2]]])"),
            "plain");
}

TEST(PackedLayoutTest, OnAGpuTilesOfCopiesArePackedAlone) {
  constexpr std::string_view kDag =
      "input W: float32[8, 4]\n@packed_placeholders(W)\nS[k: 32] = W[k // 4, k % 4] * 2.0\n";
  // W is read in shared memory by a stage of one axis, while W has two.
  constexpr std::string_view kComputed =
      R"([["CHW", 1, "shared"], ["SP", 2, 0, 32, [4], 1], ["CA", 1, 2, 0]])";
  EXPECT_EQ(LayoutOf(Lowered(StateFrom(kDag, kComputed), /*gpu=*/true), "W"), "plain");
  // A copy of each tile of rows.
  constexpr std::string_view kCopied =
      R"([["CHR", 0, "shared", [1]], ["SP", 2, 0, 32, [8], 1], ["CA", 1, 2, 0]])";
  EXPECT_EQ(LayoutOf(Lowered(StateFrom(kDag, kCopied), /*gpu=*/true), "W"),
            "[4, 2, 4] of [8, 4] by [0: 2, 0: 1, 1: 1]");
}

TEST(PackedLayoutTest, WhatHasNoSuchOrderStaysAsItIs) {
  constexpr std::string_view kSteps = R"([["PR", 1, 0, "auto_unroll_max_step$16"]])";
  // Two reads, an offset, a diagonal, a part alone, and a read backwards.
  for (const char* body : {"B[i] + B[i + 1]", "B[i + 1]", "B[i // 2]", "B[7 - i]", "B[0]"}) {
    const std::string dag =
        fmt::format("input B: float32[8]\n@packed_placeholders(B)\nC[i: 7] = {}\n", body);
    EXPECT_EQ(LayoutOf(dag, kSteps), "plain") << body;
  }
  // The reader is inlined into its own reader.
  constexpr std::string_view kInlined =
      "input B: float32[8]\n@packed_placeholders(B)\nC[i: 8] = B[i] * 2.0\nD[i: 8] = C[i] + 1.0\n";
  EXPECT_EQ(LayoutOf(kInlined, R"([["CI", 1]])"), "plain");
  EXPECT_OK(Check(StateFrom(kInlined, R"([["CI", 1]])")));
  // 3 of 8 elements in two dimensions: 9 * 9 of 5 * 5 elements.
  EXPECT_EQ(LayoutOf("input A: float32[5]\ninput B: float32[5, 5]\n@packed_placeholders(B)\n"
                     "C[i: 5] = sum(k: 5) A[k] * B[i, k]\n",
                     R"([["SP", 2, 0, 5, [4], 1], ["SP", 2, 2, 5, [4], 1]])"),
            "plain");
}

// Every way to split two loops of a small product, even unevenly, in every order of its loops.
TEST(PackedLayoutTest, EverySplitInEveryOrder) {
  constexpr std::string_view kSmall =
      "input A: float32[2, 3]\ninput B: float32[3, 5]\n"
      "@packed_placeholders(B)\n"
      "C[i: 2, j: 5] = sum(k: 3) A[i, k] * B[k, j]\n";
  int packed = 0;
  for (int j = 1; j <= 5; ++j) {
    for (int k = 1; k <= 3; ++k) {
      std::vector<int> order = {0, 1, 2, 3, 4};
      do {
        const std::string steps =
            fmt::format(R"([["SP", 2, 2, 3, [{}], 1], ["SP", 2, 1, 5, [{}], 1], ["RE", 2, [{}]]])",
                        k, j, fmt::join(order, ", "));
        const schedule::State state = StateFrom(kSmall, steps);
        const Status right = Check(state);
        ASSERT_TRUE(right.ok()) << steps << right;
        packed += LayoutOf(Lowered(state), "B") != "plain";
      } while (std::ranges::next_permutation(order).found);
    }
  }
  // All are packed but one: loops of 5 and 4 split by 3 and 2 would take more than twice the
  // elements, 8 * 4.
  EXPECT_EQ(packed, (5 * 3 - 1) * 120);
}

}  // namespace
}  // namespace kiln::lower
