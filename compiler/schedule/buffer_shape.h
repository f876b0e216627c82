// The shape of the buffer that holds a stage's region: dimensions in the order of the stage's
// layout (LA steps), rows padded (SA steps). Rows that are swizzled (Hint::kSwizzle) are padded to
// whole lines alone: any other padding would be for banks, of which swizzling takes care.
// Output buffers of a program have the shape of the tensor instead.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/schedule/state.h"

namespace kiln::schedule {

// Of shared memory, all banks of it: what swizzled rows are padded to.
inline constexpr int64_t kLineBytes = 128;

// Are the rows of the stage's buffer swizzled? What units of four warps read always is.
bool IsSwizzled(const State& state, int s);

// What is computed of each spatial axis where the stage is attached, at least one element. Extents must be
// filled.
std::vector<int64_t> RegionOf(const Stage& stage);

// region: the extent of each spatial axis.
std::vector<int64_t> BufferShape(const Stage& stage, std::span<const int64_t> region,
                                 bool is_swizzled = false);

// The axis that dimension d of the buffer is for.
inline int AxisOfDimension(const Stage& stage, int d) {
  return stage.layout.empty() ? d : stage.layout[d];
}

}  // namespace kiln::schedule
