// Moves between neighbouring tiles of matrix units (search/space/matrix_product.h).
//
// Such a tile has threads in fixed places, and hardly any move of tile_moves.h keeps it one. These
// change how many rows, columns and warps a block has, which axes its rows are of, and how deep a
// step of the sum is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/rng.h"
#include "compiler/schedule/state.h"
#include "search/space/matrix_product.h"

namespace kiln::search {

// How a schedule cuts the stage that matrix units compute.
struct MatrixTiles {
  MatrixProduct product;
  MatrixUnit unit = MatrixUnit::kWarp;
  std::vector<int64_t> extents;               // of the spatial axes
  std::vector<int> steps;                     // the numbers of their splits
  std::vector<std::vector<int64_t>> lengths;  // [vthreads, threads, inner, inner] of each
  int depth_step = -1;                        // the split of the reduce axis; -1: it has none
  std::vector<int64_t> depth_lengths;
  int64_t depth_extent = 0;
};

// Nothing: matrix units compute none of its stages, or its tiles are of another form.
std::optional<MatrixTiles> MatrixTilesOf(const schedule::State& state);

// Changes at least one length; what becomes of it still fits the unit. False: no draw of a few did.
// The tile may be too large for a device or for a thread, which a check of the schedule finds.
bool MoveMatrixTiles(MatrixTiles& tiles, Rng& rng);

}  // namespace kiln::search
