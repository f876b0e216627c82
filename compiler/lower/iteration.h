// The way in which the loops of one stage enumerate its axes: extents through splits and fuses,
// axis values as sums of loop variables.
#pragma once

#include <span>
#include <vector>

#include "compiler/arith/simplify.h"
#include "compiler/schedule/state.h"

namespace kiln::lower {

// Returns the extents of every iterator of a stage, given those of its axes. A split child never
// has more iterations than its parent needs, unless it is bound to a GPU thread or block (all
// stages of a kernel must agree on those).
std::vector<int64_t> IterExtents(const schedule::Stage& stage,
                                 std::span<const int64_t> axis_extents);

// Returns the values of every iterator, given those of the loops (indexed like Stage::loops). If a
// fused loop overhangs its end, which is guarded, values may lie beyond the extents of their
// iterators. With `inside` they never do. That takes one more remainder, but keeps the regions
// small that follow from the values.
std::vector<arith::Linear> IterValues(const schedule::Stage& stage,
                                      std::span<const int64_t> iter_extents,
                                      std::span<const arith::Linear> loop_values,
                                      arith::Simplifier& simplifier, bool inside = false);

// A guard of an inexact split: the iteration is inside if value < extent for the parent.
struct SplitGuard {
  // The parent, an index into Stage::iters.
  int32_t iter;
  int64_t extent;
};
std::vector<SplitGuard> SplitGuards(const schedule::Stage& stage,
                                    std::span<const int64_t> iter_extents);

}  // namespace kiln::lower
