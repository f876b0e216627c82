#include "compiler/instructions/matrix_shape.h"

#include <fmt/format.h>

#include <bit>

#include "compiler/instructions/matrix_unit.h"

namespace kiln::instructions {

using ir::MatrixUnitScope;

std::string WhyNoThreads(MatrixUnitScope scope, int64_t row_threads, int64_t column_threads) {
  const int64_t warps = column_threads / kThreadColumns;
  const bool has_warps = column_threads % kThreadColumns == 0 && warps <= kMostWarpColumns &&
                         std::has_single_bit(static_cast<uint64_t>(warps));
  if (!has_warps)
    return fmt::format("the columns have {} threads, expected 4, 8, 16 or 32", column_threads);
  if (row_threads % kThreadRows != 0) {
    return fmt::format("the rows have {} threads, expected a multiple of {}", row_threads,
                       kThreadRows);
  }
  if (scope != MatrixUnitScope::kWarpgroup) return "";
  if (warps > 1) return "warps stand beside each other along the columns";
  if (row_threads % (kWarpgroupWarps * kThreadRows) == 0) return "";
  return fmt::format("a block has {} threads, expected a multiple of {} for four warps together",
                     row_threads * column_threads, kWarpgroupThreads);
}

std::string WhyNoElements(MatrixUnitScope scope, int64_t rows, int64_t columns) {
  if (rows % 2 != 0 || columns % 2 != 0) {
    return fmt::format("a thread has {} rows and {} columns, expected an even number of each", rows,
                       columns);
  }
  if (rows * columns > kMostTileElements) {
    return fmt::format("a thread has {} elements of the tile, at most {} can be", rows * columns,
                       kMostTileElements);
  }
  const int64_t of_instruction = columns / kThreadNeighbours * kTileColumns;
  if (scope != MatrixUnitScope::kWarpgroup || of_instruction <= kMostWarpgroupColumns) return "";
  return fmt::format("a tile of four warps together has {} columns, at most {} can be",
                     of_instruction, kMostWarpgroupColumns);
}

}  // namespace kiln::instructions
