// Tiles of a sum of products by the matrix units of sm_90: wgmma, for which four warps, a warpgroup,
// compute 64 rows and up to 256 columns. Internal to this folder.
//
// A stage with the hint matrix_unit 2 is tiled as for one warp (matrix_tile.h). What a thread has of
// the first factor and of the sums is the same as for mma.sync, warp after warp (PTX ISA, "Register
// Fragments for wgmma.mma_async.m64nNk16", likewise k8 and k32), so that any rows do. Besides,
//
//   * the columns of a thread's tile are those of the whole instruction: the second factor is the
//     same for the four warps, and its columns follow each other;
//   * the units read the second factor from shared memory themselves, where it is swizzled
//     (swizzle.h): they are told of it by a descriptor (PTX ISA, "Matrix Descriptor Format"). But of
//     16 bits its neighbours are along the sum;
//   * the first factor, too, where its neighbours are along the sum and the threads of its rows follow
//     each other: the rows of a matrix, not those of a window that moves. Else it comes through
//     registers; or it is there already (lower/warp_registers.h).
//
// The units work beside the threads. The text waits for them before anything but asynchronous copies
// that stands behind the tile, so that a barrier is all that is needed before the shared memory is
// written that they read. Where nothing is in registers and the tiles are a ring with a buffer to
// spare (compiler/lower/fetch_ahead.h), it waits for the products of the iteration before, and for the
// last ones behind the loop: those of an iteration run on while all threads meet for the next one.
// What threads and copies wrote, the units see behind fence_async_proxy, which stands before the
// barriers of such a kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/codegen/cuda/blocks.h"
#include "compiler/codegen/cuda/names.h"
#include "compiler/codegen/cuda/warpgroup_factor.h"
#include "compiler/instructions/matrix_unit.h"

namespace kiln::codegen {

// The text of a tile.
struct WarpgroupText {
  struct Rows {
    std::string low, high;  // where the sums of rows t/4 and t/4 + 8 begin, column after column
    // Where the first factor starts, inside of the loops; none: it is in registers.
    std::function<std::string()> start = {};
  };
  std::vector<std::pair<int32_t, int64_t>> loops;  // of the sum: variable, extent
  std::vector<Rows> rows;                          // each is 64 rows
  std::string sums;                                // the array of all
  SumsApart sums_apart = {};
  const instructions::MatrixUnit* unit = nullptr;
  WarpgroupFactor factor;                            // the second one
  std::optional<WarpgroupFactor> first_factor = {};  // none: it is in registers
  // Steps that are written out, without loops, since what each thread has of the first factor is in
  // registers of known numbers before; 0: it is not. set_step(i): what follows is of step i.
  int64_t held_steps = 0;
  std::function<void(int64_t step)> set_step = {};
  // Inside of the loops: emits what brings the first factor into `tiles`, a name, where it is to be in
  // registers; and where the second one starts.
  std::function<void(const std::string& tiles)> load;
  std::function<std::string()> start;
};
// True: it is to be waited for.
bool EmitWarpgroup(const WarpgroupText& tile, const std::string& tiles, CudaBlocks& blocks);
// A wait is followed by no reading of sums, by one that computes with them, or by any.
enum class SumReading : uint8_t { kNone, kComputing, kAny };

// Waits until so many tiles are under way, the latest ones. `sums`: arrays of those that no longer
// are.
void EmitWait(const std::vector<std::string>& sums, int64_t under_way, SumReading reading,
              CudaBlocks& blocks);

}  // namespace kiln::codegen
