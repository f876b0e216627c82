// Rows of a tile of matrix units that lie in memory in the order in which the units of four warps read
// them (compiler/codegen/cuda/matrix_warpgroup.h), though they are rows of several axes, as of an
// image: 8 threads, the two rows of each, four warps, and the next 64 rows. So they need not come
// through registers, and the copy engine brings them as boxes of the image, where a fetch has one
// element of the window: the window moves by its outer loops.
//
//   axes n, y, x as [virtual threads, threads]:  x [2, 8], y [1, 4]: 16 columns of 4 lines
//   x [1, 4], y [2, 2], n [1, 4]: 4 x 4 points of 4 images
//
// Rows of one axis are never so: the two of a thread are half of the axis apart. Those are interleaved
// instead (codegen/cuda/swizzle.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/numbers/rng.h"
#include "search/space/matrix_product.h"

namespace kiln::search {

// One axis of rows: [vthreads, threads] of it, and how many rows of memory two neighbours are apart.
struct RowsOfAxis {
  int64_t vthreads = 1, threads = 1;
  int64_t apart = 1;
};

// Axes in the order in which threads are numbered, the last one fastest.
bool FollowInMemory(std::span<const RowsOfAxis> axes);

// Of a tile, [vthreads, threads, inner, inner] of each tiled axis. `fetched`: extents of what is fetched
// of the first factor, a dimension each; empty: the tile's own, with one element of the window.
bool HasRowsInOrder(const MatrixProduct& product, std::span<const std::vector<int64_t>> lengths,
                    std::span<const int64_t> fetched = {});

// [vthreads, threads] of row axes of these extents, in the order of their threads: `groups` times four
// warps, of which each thread has `rows`, an even number. Empty: this draw does not fit.
std::vector<std::vector<int64_t>> RandomRowsInOrder(std::span<const int64_t> extents,
                                                    int64_t groups, int64_t rows, Rng& rng);

}  // namespace kiln::search
