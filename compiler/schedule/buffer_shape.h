// The shape of the buffer that holds a stage's region. Its dimensions are in the order of the
// stage's layout (LA steps), and its rows are padded (SA steps). Rows that are swizzled
// (Hint::kSwizzle) are padded only to whole lines: other paddings serve to avoid bank conflicts,
// which swizzling avoids already. Output buffers of a program have the shape of the tensor instead.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/schedule/state.h"

namespace kiln::schedule {

// Bytes of a line of shared memory, which spans all banks. Swizzled rows are padded to whole lines.
inline constexpr int64_t kLineBytes = 128;

// Returns true if the rows of the stage's buffer are swizzled. Rows that units of four warps read
// always are.
bool IsSwizzled(const State& state, int s);

// Returns for each spatial axis the number of elements that are computed at one place of the
// stage's attachment, at least one. Extents must be filled.
std::vector<int64_t> RegionOf(const Stage& stage);

// `region` has the extent of each spatial axis.
std::vector<int64_t> BufferShape(const Stage& stage, std::span<const int64_t> region,
                                 bool is_swizzled = false);

// Returns the axis of dimension d of the buffer.
inline int AxisOfDimension(const Stage& stage, int d) {
  return stage.layout.empty() ? d : stage.layout[d];
}

}  // namespace kiln::schedule
