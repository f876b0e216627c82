#include "compiler/lower/place_instructions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "base/status_testing.h"
#include "compiler/ir/interpret_random_testing.h"
#include "compiler/ir/program_text.h"

namespace kiln::lower {
namespace {
using testing::HasSubstr;
using testing::Not;

// Eight threads, each of which sums up products of its row of a with two rows of b.
constexpr std::string_view kHead =
    "program(a: input int8[8, 16], b: input int8[2, 16], out: output int32[8, 2]) { stage s "
    "kernel k grid [1, 1, 1] block [8, 1, 1] { threadIdx.x t in 0..8 { alloc acc: local int32[2] "
    "for j0 in 0..2 { acc[j0] = 0 @ s } ";
constexpr std::string_view kTail = " for j1 in 0..2 { out[t, j1] = acc[j1] @ s } } } }";

ir::Program Parse(std::string_view sums, std::string_view head = kHead) {
  StatusOr<ir::Program> program =
      ir::ParseProgram(std::string(head) + std::string(sums) + std::string(kTail));
  KILN_CHECK(program.ok(), "{}", Message(program.status()));
  return *std::move(program);
}

ir::Program Placed(const ir::Program& program, int arch = 70) {
  ir::Program placed = program;
  placed.pool = std::make_shared<ir::ExprPool>();
  PlaceInstructions(placed, arch);
  EXPECT_OK(ir::Verify(placed));
  return placed;
}

TEST(PlaceInstructions, FourIterationsGoInnermost) {
  const ir::Program program = Parse(
      "for k in 0..16 { for j in 0..2 { if j < 3 { acc[j] = acc[j] + int32(a[t, k])*int32(b[j, k]) "
      "@ s } } }");
  const ir::Program placed = Placed(program);
  EXPECT_THAT(ir::ProgramText(placed), HasSubstr(R"(
      for k_vec in 0..4 {
        for j in 0..2 {
          if j < 3 {
            instruction dp4a {
              for k_lane in 0..4 {
                acc[j] = acc[j] + int32(a[t, k_vec*4 + k_lane])*int32(b[j, k_vec*4 + k_lane]) @ s
              }
            }
          }
        }
      }
)"));
  EXPECT_EQ(ir::InterpretRandom(placed), ir::InterpretRandom(program));
  ASSERT_OK_AND_ASSIGN(const ir::Program read, ir::ParseProgram(ir::ProgramText(placed)));
  EXPECT_TRUE(ir::Equal(read, placed));
}

TEST(PlaceInstructions, ALoopOfFourIterationsIsTheInstructions) {
  const ir::Program program = Parse(
      "for k0 in 0..4 { unroll k1 in 0..4 { for j in 0..2 { acc[j] = acc[j] + int32(a[t, k0*4 + "
      "k1])*int32(b[j, k0*4 + k1]) @ s } } }");
  const ir::Program placed = Placed(program);
  EXPECT_THAT(ir::ProgramText(placed), HasSubstr(R"(
      for k0 in 0..4 {
        for j in 0..2 {
          instruction dp4a {
            unroll k1_lane in 0..4 {
)"));
  EXPECT_EQ(ir::InterpretRandom(placed), ir::InterpretRandom(program));
}

TEST(PlaceInstructions, OtherLoopsStayAsTheyAre) {
  const auto sums = [](std::string_view loops, std::string_view a, std::string_view b) {
    return fmt::format("{} acc[j] = acc[j] + int32({})*int32({}) @ s {}", loops, a, b,
                       std::string(static_cast<size_t>(std::ranges::count(loops, '{')), '}'));
  };
  constexpr std::string_view kLoops = "for k in 0..4 { for j in 0..2 {";
  const std::string kCases[] = {
      // Factors apart, at no multiple of four, and of no multiple of four iterations.
      sums(kLoops, "a[t, k*2]", "b[j, k]"),
      sums(kLoops, "a[t, k + 1]", "b[j, k]"),
      sums("for k in 0..6 { for j in 0..2 {", "a[t, k]", "b[j, k]"),
      // A condition or a sum that depends on the loop.
      sums("for k in 0..4 { for j in 0..2 { if k < 3 {", "a[t, k]", "b[j, k]"),
      sums("for j in 0..2 { for k in 0..1 {", "a[t, j]", "b[j, k]"),
      // One of the factors is the same for all.
      sums(kLoops, "a[t, k]", "b[j, 0]"),
  };
  for (const std::string& text : kCases) {
    const ir::Program program = Parse(text);
    EXPECT_TRUE(ir::Equal(Placed(program), program)) << text;
  }
}

TEST(PlaceInstructions, AnOlderArchitectureHasNone) {
  const ir::Program program = Parse(
      "for k in 0..16 { for j in 0..2 { acc[j] = acc[j] + int32(a[t, k])*int32(b[j, k]) @ s } }");
  EXPECT_TRUE(ir::Equal(Placed(program, 60), program));
  EXPECT_FALSE(ir::Equal(Placed(program, 61), program));
}

TEST(PlaceInstructions, MatrixUnitsAndRegistersHaveNone) {
  constexpr std::string_view kSums =
      "for k in 0..16 { for j in 0..2 { acc[j] = acc[j] + int32(a[t, k])*int32(b[j, k]) @ s } }";
  EXPECT_THAT(ir::ProgramText(Placed(Parse(kSums))), HasSubstr("instruction dp4a"));
  std::string with_units(kHead);
  with_units.replace(with_units.find("stage s"), 7, "stage s matrix_unit 1");
  EXPECT_THAT(ir::ProgramText(Placed(Parse(kSums, with_units))), Not(HasSubstr("instruction")));
  const std::string from_registers =
      "alloc row: local int8[16] for r in 0..16 { row[r] = a[t, r] @ s } for k in 0..16 { for j in "
      "0..2 { acc[j] = acc[j] + int32(row[k])*int32(b[j, k]) @ s } }";
  EXPECT_THAT(ir::ProgramText(Placed(Parse(from_registers))), Not(HasSubstr("instruction")));
}

}  // namespace
}  // namespace kiln::lower
