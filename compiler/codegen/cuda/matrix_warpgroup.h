// Tiles of a sum of products by the matrix units of sm_90: wgmma, for which four warps, a warpgroup,
// compute 64 rows and up to 256 columns. Internal to this folder.
//
// A stage with the hint matrix_unit 2 is tiled as for one warp (matrix_tile.h). What a thread has of
// the first factor and of the sums is the same as for mma.sync, warp after warp (PTX ISA, "Register
// Fragments for wgmma.mma_async.m64nNk16"), so that any rows do. Besides,
//
//   * the columns of a thread's tile are those of the whole instruction: the second factor is the
//     same for the four warps, and its columns follow each other;
//   * the units read the second factor from shared memory themselves, where it is swizzled
//     (swizzle.h): they are told of it by a descriptor (PTX ISA, "Matrix Descriptor Format").
//
// The units work beside the threads. The text waits for them before anything but asynchronous copies
// that stands behind the tile, so that a barrier is all that is needed before the shared memory is
// written that they read. What threads and copies wrote, the units see behind fence_async_proxy, which
// stands before the barriers of such a kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/arith/linear.h"
#include "compiler/codegen/cuda/blocks.h"
#include "compiler/codegen/cuda/names.h"
#include "compiler/codegen/cuda/scope.h"
#include "compiler/codegen/cuda/swizzle.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

inline constexpr int64_t kWarpgroupWarps = 4, kWarpgroupThreads = 128;

// What a descriptor says of the second factor.
struct WarpgroupFactor {
  arith::Linear start;         // its first element, in panels
  bool is_transposed = false;  // neighbours are columns
  int64_t columns = 0;
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

// The text of a tile.
struct WarpgroupText {
  struct Rows {
    std::string low, high;  // where the sums of rows t/4 and t/4 + 8 are, column after column
  };
  std::vector<std::pair<int32_t, int64_t>> loops;  // of the sum: variable, extent
  std::vector<Rows> rows;                          // each is 64 rows
  std::string sums;                                // the array of all
  std::string_view type;                           // of the factors, as instructions call it
  WarpgroupFactor factor;
  // Inside of the loops: emits what brings the first factor into `tiles`, a name; and where the
  // second one starts.
  std::function<void(const std::string& tiles)> load;
  std::function<std::string()> start;
};
// True: it is to be waited for.
bool EmitWarpgroup(const WarpgroupText& tile, const std::string& tiles, CudaBlocks& blocks);
void EmitWait(const std::string& sums, CudaBlocks& blocks);

// Functions of the preamble: columns and types of the instructions.
using WarpgroupUnits = std::set<std::pair<int64_t, std::string_view>>;
std::string WarpgroupDefinitions(const WarpgroupUnits& units);

}  // namespace kiln::codegen
