// Tiles that do not divide their axis. Where the divisors of an extent make poor tiles (7, 49, 127,
// 1000, 1009), the axis is tiled as if it were a little longer. The last tile overhangs the end of
// the axis, and is guarded.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/numbers/rng.h"
#include "compiler/schedule/step.h"
#include "compiler/schedule/steps/steps.h"
#include "search/space/parameters.h"

namespace kiln::search {

// The largest share of the covered iterations that may lie beyond the axis.
inline constexpr double kMostWaste = 0.35;

// Has no divisor near (from three quarters to all of) one of 4, 8, 16 and 32: what vectors, warps
// and register tiles are made of.
bool HasPoorDivisors(int64_t extent);

// The extents to tile for: the extent itself, and, where it has poor divisors, its roundings up to
// multiples of 2, 4, 8, 16 and 32 that waste no more than kMostWaste. Ascending.
std::vector<int64_t> TileExtents(int64_t extent);

// One of TileExtents; mostly the extent itself (uneven_tile_prob), for axes that do well as they
// are although they have poor divisors.
int64_t PickTileExtent(std::span<const int64_t> extents, const Parameters& parameters, Rng& rng);

// Is the waste of tiles that cover `covered` instead of `extent` acceptable?
inline bool IsAcceptable(int64_t covered, int64_t extent) {
  return static_cast<double>(covered - extent) <= kMostWaste * static_cast<double>(covered);
}

// May the tiles of this split (step i) be uneven? These may:
//   * tiles of a spatial axis that is tiled in all levels; on a CPU only of an axis longer than 8;
//   * on a CPU, the pieces that an rfactor makes;
//   * on a GPU, tiles of a reduction that is long enough.
// The parts of a reduction that blocks or groups of threads take are always equal.
bool MayBeUneven(std::span<const schedule::StepPtr> steps, size_t i, bool gpu,
                 const Parameters& parameters);

// How many outer lengths of the split become blocks or threads. Lowering keeps these as they are
// and cuts any other length to the rest of the extent.
size_t KeptLengths(const schedule::SplitStep& split, bool gpu, const Parameters& parameters);

// Cuts all lengths but the first `kept` as lowering does, so that states which lowering makes equal
// have equal lengths. Lengths stand outermost first.
void CutLengths(std::span<int64_t> lengths, int64_t extent, size_t kept);

}  // namespace kiln::search
