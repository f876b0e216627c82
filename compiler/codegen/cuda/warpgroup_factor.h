// The description of a factor in shared memory for the units of four warps (matrix_warpgroup.h).
// Internal to this folder.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "compiler/arith/linear.h"
#include "compiler/codegen/cuda/scope.h"
#include "compiler/codegen/cuda/swizzle.h"

namespace kiln::codegen {

// A descriptor says this of a factor, besides where it starts.
struct WarpgroupFactor {
  bool is_transposed = false;  // neighbours are columns
  int64_t columns = 0;         // or rows
  int64_t swizzle_bytes = 0, leading_bytes = 0, stride_bytes = 0;
};

// The second factor as a tile has found it, in elements of a swizzled buffer.
struct ColumnPlaces {
  std::span<const arith::Linear> places;  // of the thread's columns, in pairs, at k
  int64_t column_stride = 0;              // of the threads' pairs
  int64_t pair_stride = 0;                // of the columns of a pair
  int64_t k_stride = 0;
  arith::Linear start;
};

// InvalidArgument: why no descriptor says it.
StatusOr<WarpgroupFactor> DescribeColumns(CudaScope& scope, const Swizzle& swizzle,
                                          const ColumnPlaces& found);

// Rows of the first factor, likewise: 64 of four warps.
struct RowPlaces {
  int64_t row_stride = 0;     // of the threads of a warp
  int64_t pair_stride = 0;    // of the two rows of a thread
  int64_t member_stride = 0;  // of the warps
  int64_t k_stride = 0;
  arith::Linear start;
};
StatusOr<WarpgroupFactor> DescribeRows(CudaScope& scope, const Swizzle& swizzle,
                                       const RowPlaces& found);

// How far the sums of a thread's row are apart in their array.
struct SumsApart {
  int64_t tiles = 2;  // of 8 columns each
  int64_t neighbours = 1;
  bool operator==(const SumsApart&) const = default;
};

}  // namespace kiln::codegen
