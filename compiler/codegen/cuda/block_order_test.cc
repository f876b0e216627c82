#include "compiler/codegen/cuda/block_order.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/arith/simplify.h"

namespace kiln::codegen {
namespace {

// What the definition in CUDA says, of every number: each tile once, in the order of the header's picture.
int64_t Ordered(int64_t number, int64_t rows_of_all, int64_t columns, int64_t group) {
  const int64_t in_matrix = number % (rows_of_all * columns),
                in_group = in_matrix % (group * columns),
                first = in_matrix / (group * columns) * group,
                rows = std::min(group, rows_of_all - first);
  return number - in_matrix + (first + in_group % rows) * columns + in_group / rows;
}

TEST(BlockOrder, EveryTileOnce) {
  for (int64_t rows = 1; rows <= 9; ++rows) {
    for (int64_t columns = 1; columns <= 5; ++columns) {
      for (int64_t group = 1; group <= rows; ++group) {
        std::vector<bool> seen(static_cast<size_t>(2 * rows * columns));
        for (int64_t n = 0; n < 2 * rows * columns; ++n) {
          const int64_t tile = Ordered(n, rows, columns, group);
          EXPECT_EQ(tile / (rows * columns), n / (rows * columns));
          ASSERT_FALSE(seen[static_cast<size_t>(tile)]) << rows << " " << columns << " " << group;
          seen[static_cast<size_t>(tile)] = true;
        }
      }
    }
  }
  std::vector<int64_t> order;
  for (int64_t n = 0; n < 16; ++n) order.push_back(Ordered(n, 4, 4, 2));
  EXPECT_THAT(order, testing::ElementsAre(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15));
}

class FindBlockGridTest : public testing::Test {
 protected:
  FindBlockGridTest() : block_(simplifier_.Var(simplifier_.AddVar(96))) {}
  std::string Of(std::initializer_list<arith::Linear> starts) {
    const std::optional<BlockGrid> grid = FindBlockGrid(std::vector(starts), 0, 96);
    return grid ? fmt::format("{} x {}", grid->rows, grid->columns) : "none";
  }

  ir::ExprPool pool_;
  arith::Simplifier simplifier_{pool_};
  const arith::Linear block_;
};

TEST_F(FindBlockGridTest, ByWhereTilesStart) {
  const auto div = [&](int64_t c) { return simplifier_.FloorDiv(block_, c); };
  const auto mod = [&](int64_t c) { return simplifier_.FloorMod(block_, c); };
  EXPECT_EQ(Of({div(8) * 128, mod(8) * 64}), "12 x 8");
  // 4 matrices of 6 x 4 tiles.
  EXPECT_EQ(Of({div(24), simplifier_.FloorMod(div(4), 6) * 128, mod(4) * 64}), "6 x 4");
  EXPECT_EQ(Of({block_ * 64}), "none");
  EXPECT_EQ(Of({}), "none");
}

}  // namespace
}  // namespace kiln::codegen
