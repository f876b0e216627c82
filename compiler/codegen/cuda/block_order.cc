#include "compiler/codegen/cuda/block_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/ir/traverse.h"

namespace kiln::codegen {
namespace {
using ir::Expr;
using ir::Op;

constexpr int64_t kRowsOfGroup = 8;

// c of each b // c and b % c.
void CollectDivisors(Expr e, int32_t var, std::set<int64_t>& divisors) {
  ir::Visit(e, [&](Expr node) {
    const bool is_quotient = node->op == Op::kFloorDiv || node->op == Op::kFloorMod;
    if (is_quotient && node->arg(0)->op == Op::kVar && node->arg(0)->id == var &&
        node->arg(1)->is_const_int())
      divisors.insert(node->arg(1)->int_value);
  });
}

}  // namespace

std::optional<BlockGrid> FindBlockGrid(std::span<const arith::Linear> starts, int32_t var,
                                       int64_t blocks) {
  std::set<int64_t> divisors;
  for (const arith::Linear& start : starts) {
    for (const arith::Term& term : start.terms) CollectDivisors(term.atom, var, divisors);
  }
  divisors.erase(1);
  divisors.insert(blocks);
  const int64_t columns = *divisors.begin();
  // The next one up is that of a whole matrix.
  const auto whole =
      std::ranges::find_if(divisors, [&](int64_t c) { return c > columns && c % columns == 0; });
  if (whole == divisors.end() || blocks % *whole != 0) return std::nullopt;
  return BlockGrid{.rows = *whole / columns, .columns = columns};
}

std::string OrderedBlock(const BlockGrid& grid, std::string_view number) {
  return fmt::format("ordered_block<{}, {}, {}>({})", grid.rows, grid.columns,
                     std::min(kRowsOfGroup, grid.rows), number);
}

std::string_view BlockOrderDefinition() {
  return R"cuda(// The tile of a block: numbers go down kGroup rows of tiles, column by column.
template <int kRows, int kColumns, int kGroup>
__device__ __forceinline__ int ordered_block(int number) {
  const int in_matrix = number % (kRows * kColumns), in_group = number % (kRows * kColumns) % (kGroup * kColumns),
            first = in_matrix / (kGroup * kColumns) * kGroup,
            rows = kRows - first < kGroup ? kRows - first : kGroup;
  return number - in_matrix + (first + in_group % rows) * kColumns + in_group / rows;
}

)cuda";
}

}  // namespace kiln::codegen
