#include "compiler/codegen/cuda/place_matrix_units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status_testing.h"
#include "compiler/ir/interpret_random_testing.h"
#include "compiler/ir/program_text.h"

namespace kiln::codegen {
namespace {
using testing::HasSubstr;
using testing::Not;

// One warp, of which each thread has two rows and two columns of a matrix of 16 x 8: sums of 16
// products.
struct Tile {
  std::string hint = "matrix_unit 1", around = "", end = "", row = "i*8 + t // 4",
              sums =
                  "for k in 0..16 { for i in 0..2 { for j in 0..2 { acc[i, j] = acc[i, j] + "
                  "float32(a[ROW, k])*float32(b[t % 4*2 + j, k]) @ s } } }";

  std::string Text() const {
    std::string tile = around + sums + end;
    if (const size_t at = tile.find("ROW"); at != std::string::npos) tile.replace(at, 3, row);
    return "program(A: input float16[16, 16], B: input float16[8, 16], C: output float32[16, 8]) { "
           "stage s " +
           hint +
           " stage C kernel k grid [1, 1, 1] block [32, 1, 1] { threadIdx.x t in 0..32 { "
           "alloc acc: local float32[2, 2] alloc a: shared float16[16, 24] "
           "alloc b: shared float16[8, 24] "
           "for l in 0..8 { a[t // 2, t % 2*8 + l] = A[t // 2, t % 2*8 + l] @ C } "
           "for m in 0..4 { b[t // 4, t % 4*4 + m] = B[t // 4, t % 4*4 + m] @ C } barrier "
           "for i0 in 0..2 { for j0 in 0..2 { acc[i0, j0] = 0.0 @ s } } " +
           tile +
           " for i1 in 0..2 { for j1 in 0..2 { C[i1*8 + t // 4, t % 4*2 + j1] = acc[i1, j1] @ C } "
           "} } } }";
  }
};

ir::Program Parse(std::string_view text) {
  StatusOr<ir::Program> program = ir::ParseProgram(text);
  KILN_CHECK(program.ok(), "{}\n{}", Message(program.status()), text);
  return *std::move(program);
}

struct Placed {
  // The nodes of `program` are those of both pools.
  ir::Program source, program;
  StatusOr<MatrixUnitPlan> plan = MatrixUnitPlan();

  std::string Why() const { return std::string(Message(plan.status())); }
};

Placed Place(const ir::Program& source) {
  Placed placed{source, source};
  placed.program.pool = std::make_shared<ir::ExprPool>();
  placed.plan = PlaceMatrixUnits(placed.program);
  EXPECT_OK(ir::Verify(placed.program));
  return placed;
}

Placed Place(const Tile& tile) { return Place(Parse(tile.Text())); }

TEST(PlaceMatrixUnits, AStatementStandsAroundTheLoopsOfATile) {
  const ir::Program program = Parse(Tile().Text());
  const Placed placed = Place(program);
  ASSERT_OK(placed.plan.status());
  EXPECT_THAT(ir::ProgramText(placed.program), HasSubstr(R"(
      instruction mma_f16 {
        for k in 0..16 {
          for i in 0..2 {
            for j in 0..2 {
              acc[i, j] = acc[i, j] + float32(a[i*8 + t // 4, k])*float32(b[(t % 4)*2 + j, k]) @ s
)"));
  EXPECT_EQ(ir::InterpretRandom(placed.program), ir::InterpretRandom(program));
}

TEST(PlaceMatrixUnits, ThePlanSaysWhichThreadHasWhat) {
  const Placed placed = Place(Tile());
  ASSERT_OK(placed.plan.status());
  ASSERT_EQ(placed.plan->tiles.size(), 1U);
  const auto& [statement, tile] = *placed.plan->tiles.begin();
  EXPECT_EQ(statement->kind, ir::StmtKind::kInstruction);
  EXPECT_EQ(tile.unit->name, "f16");
  EXPECT_FALSE(tile.is_warpgroup);
  EXPECT_EQ(placed.program.buffers[static_cast<size_t>(tile.a.load->id)].name, "a");
  EXPECT_EQ(tile.a.reading, MatrixOperand::Reading::kRows);
  // Rows of 24 elements, of which a thread has two that are 8 rows apart, and neighbours of b.
  EXPECT_EQ(tile.a.pair_stride, 8 * 24);
  EXPECT_EQ(tile.b.pair_stride, 24);
  EXPECT_EQ(tile.sums, (std::vector<std::vector<int64_t>>{{0, 1}, {2, 3}}));
  EXPECT_EQ(tile.order, WarpOrder());
}

// A person may write them, and this pass has put them into what it made before.
TEST(PlaceMatrixUnits, StatementsThatAreThereHaveAPlanToo) {
  const Placed first = Place(Tile());
  ASSERT_OK(first.plan.status());
  const Placed again = Place(Parse(ir::ProgramText(first.program)));
  ASSERT_OK(again.plan.status());
  EXPECT_TRUE(ir::Equal(again.program, first.program));
  EXPECT_EQ(again.plan->tiles.size(), 1U);
  // Without the hint, too: the statement says enough.
  const Placed written = Place(Tile{.hint = "", .around = "instruction mma_f16 { ", .end = " }"});
  ASSERT_OK(written.plan.status());
  EXPECT_EQ(written.plan->tiles.size(), 1U);
  const Placed other = Place(Tile{.around = "instruction mma_bf16 { ", .end = " }"});
  EXPECT_EQ(other.Why(), "instruction 'mma_bf16' does not compute what its statement says");
  const Placed no_sum =
      Place(Tile{.around = "instruction mma_f16 { ", .end = " }", .sums = "acc[0, 0] = 1.0 @ s"});
  EXPECT_EQ(no_sum.Why(), "the body of instruction 'mma_f16' is no sum into registers");
}

TEST(PlaceMatrixUnits, OnlyStagesWithTheHintHaveThem) {
  const Placed placed = Place(Tile{.hint = ""});
  ASSERT_OK(placed.plan.status());
  EXPECT_TRUE(placed.plan->tiles.empty());
  EXPECT_THAT(ir::ProgramText(placed.program), Not(HasSubstr("instruction")));
}

TEST(PlaceMatrixUnits, WhatDoesNotFitIsRefused) {
  const std::string stage = "matrix units can't compute stage 's': ";
  EXPECT_EQ(Place(Tile{.row = "i*8 + t % 8"}).Why(),
            stage + "the first factor, a, is not the same for the threads of a row of 8 x 4");
  EXPECT_EQ(Place(Tile{.around = "if t < 31 { ", .end = " }"}).Why(),
            stage +
                "not all threads of a block compute it, numbered by threadIdx.x alone, a multiple "
                "of 32");
  EXPECT_EQ(Place(Tile{.sums = "acc[0, 0] = 1.0 @ s"}).Why(),
            stage + "it is no sum into registers in loops of its own, innermost");
}

}  // namespace
}  // namespace kiln::codegen
