#include "compiler/codegen/cuda/warpgroup_factor.h"

#include <algorithm>
#include <vector>

#include "compiler/instructions/matrix_unit.h"

namespace kiln::codegen {
namespace {
using arith::Linear;

constexpr int64_t kColumnsOfTile = instructions::kTileColumns,
                  kRowsOfTile = instructions::kWarpgroupRows;
constexpr int64_t kPieceBytes = 16;

Status CheckWidth(const Swizzle& swizzle) {
  if (swizzle.bytes >= kLeastSwizzleBytes) return OkStatus();
  return InvalidArgument("its rows are no multiple of {} bytes", kLeastSwizzleBytes);
}

// Permutations are of addresses: lines are numbered from a multiple of 8. `room`: elements of a line
// in which it may start.
Status CheckStart(CudaScope& scope, const Swizzle& swizzle, const Linear& start, int64_t room) {
  const int64_t piece = kPieceBytes / swizzle.element_bytes();
  const auto [whole, rest] = InPeriods(swizzle, start);
  const arith::Interval in_line = scope.simplifier().RangeOf(rest);
  const bool is_aligned = std::ranges::all_of(
      rest.terms, [&](const arith::Term& term) { return term.coefficient % piece == 0; });
  if (in_line.lo >= 0 && in_line.hi <= room && is_aligned && rest.constant % piece == 0)
    return OkStatus();
  return InvalidArgument("it does not start in a row that is a multiple of 8");
}

// Returns the last element of a line at which one instruction may start to read neighbours along
// the sum.
int64_t RoomAlongSum(const Swizzle& swizzle) {
  return swizzle.width - 2 * kPieceBytes / swizzle.element_bytes();
}

}  // namespace

StatusOr<WarpgroupFactor> DescribeColumns(CudaScope& scope, const Swizzle& swizzle,
                                          const ColumnPlaces& found) {
  KILN_RETURN_IF_ERROR(CheckWidth(swizzle));
  const int64_t bytes = swizzle.element_bytes(), line = swizzle.width;
  WarpgroupFactor factor;
  factor.columns = std::ssize(found.places) / 2 * kColumnsOfTile;
  factor.is_transposed = found.k_stride != 1;
  if (factor.is_transposed && bytes != 2)
    return InvalidArgument(
        "its neighbours are not along the sum, as those of 16 bits alone may be");
  const int64_t step = factor.is_transposed ? 1 : line;  // from a column to the next one
  if (found.column_stride != 2 * step || found.pair_stride != step ||
      (factor.is_transposed && found.k_stride != line))
    return InvalidArgument("its rows do not follow each other");
  // Each tile has 8 columns.
  std::vector<int64_t> tiles;
  for (size_t i = 0; i < found.places.size(); i += 2) {
    const Linear apart = found.places[i] - found.places[0];
    if (!apart.is_constant()) return InvalidArgument("its columns are not a constant apart");
    tiles.push_back(apart.constant);
  }
  const int64_t stride = factor.is_transposed ? swizzle.panel
                         : tiles.size() > 1   ? tiles[1]
                                              : swizzle.period();
  for (size_t j = 0; j < tiles.size(); ++j) {
    const int64_t column = static_cast<int64_t>(j) * kColumnsOfTile;
    const int64_t expected = factor.is_transposed ? column / line * stride + column % line
                                                  : static_cast<int64_t>(j) * stride;
    if (tiles[j] != expected) return InvalidArgument("its columns do not follow each other");
  }
  if (stride % swizzle.period() != 0 && factor.columns > (factor.is_transposed ? line : 8))
    return InvalidArgument("its rows are not a multiple of 8");
  const int64_t room = !factor.is_transposed   ? RoomAlongSum(swizzle)
                       : factor.columns < line ? line - factor.columns
                                               : 0;
  KILN_RETURN_IF_ERROR(CheckStart(scope, swizzle, found.start, room));
  factor.swizzle_bytes = swizzle.bytes;
  // Panels, and 8 rows; of neighbours along the sum there is but one panel.
  factor.leading_bytes = factor.is_transposed ? stride * bytes : 16;
  factor.stride_bytes = (factor.is_transposed ? swizzle.period() : stride) * bytes;
  return factor;
}

StatusOr<WarpgroupFactor> DescribeRows(CudaScope& scope, const Swizzle& swizzle,
                                       const RowPlaces& found) {
  KILN_RETURN_IF_ERROR(CheckWidth(swizzle));
  if (found.k_stride != 1) return InvalidArgument("its neighbours are not along the sum");
  if (found.row_stride != swizzle.width || found.pair_stride != swizzle.period() ||
      found.member_stride != 2 * swizzle.period())
    return InvalidArgument("its rows do not follow each other");
  KILN_RETURN_IF_ERROR(CheckStart(scope, swizzle, found.start, RoomAlongSum(swizzle)));
  return WarpgroupFactor{.columns = kRowsOfTile,
                         .swizzle_bytes = swizzle.bytes,
                         .leading_bytes = kPieceBytes,
                         .stride_bytes = swizzle.period() * swizzle.element_bytes()};
}

}  // namespace kiln::codegen
