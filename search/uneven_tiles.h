// Tiles that do not divide their axis: for extents whose own divisors make poor tiles (7, 49, 127,
// 1000, 1009), as if the axis were a little longer. The last tile sticks out, and is guarded.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"
#include "compiler/schedule/step.h"
#include "compiler/schedule/steps/steps.h"
#include "search/parameters.h"

namespace kiln::search {

// Of what the tiles cover, the most that is outside of the axis.
inline constexpr double kMostWaste = 0.35;

// Has no divisor near (from three quarters to all of) one of 4, 8, 16 and 32: what vectors, warps
// and register tiles are made of.
bool HasPoorDivisors(int64_t extent);

// The extent; and where it has poor divisors, it rounded up to multiples of 2, 4, 8, 16 and 32 that
// waste no more than kMostWaste. Ascending.
std::vector<int64_t> TileExtents(int64_t extent);

// One of TileExtents; at least every second time the extent itself, for axes that do well as they
// are although they have poor divisors.
int64_t PickTileExtent(std::span<const int64_t> extents, Rng& rng);

// Is the waste of tiles that cover `covered` instead of `extent` acceptable?
inline bool IsAcceptable(int64_t covered, int64_t extent) {
  return static_cast<double>(covered - extent) <= kMostWaste * static_cast<double>(covered);
}

// May the tiles of this split (step i) be uneven? Those of spatial axes may, where an axis is tiled
// in all levels; the pieces that an rfactor makes on a CPU; on a GPU also those of reductions that
// are long enough. Not axes up to 8 on a CPU. Parts that blocks or groups of threads reduce are
// equal.
bool MayBeUneven(std::span<const schedule::StepPtr> steps, size_t i, bool gpu,
                 const Parameters& parameters);

// How many outer lengths of the split become blocks of threads: lowering keeps them as they are.
// Any other is cut to what is left of the extent.
size_t KeptLengths(const schedule::SplitStep& split, bool gpu, const Parameters& parameters);

// Cuts the lengths, outermost first, behind the first `kept` as lowering does: states that differ
// in nothing else have the same lengths.
void CutLengths(std::span<int64_t> lengths, int64_t extent, size_t kept);

}  // namespace kiln::search
