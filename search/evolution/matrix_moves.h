// Moves between neighbouring tiles of matrix units (search/space/matrix_tile.h).
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
#include "search/space/matrix_tile.h"

namespace kiln::search {

// How a schedule cuts the stage that matrix units compute.
struct MatrixTiles {
  MatrixProduct product;
  ir::MatrixUnitScope scope = ir::MatrixUnitScope::kWarp;
  MatrixSplits splits;
  std::optional<size_t> depth = {};  // of the splits' reductions the one whose steps the unit takes
};

// Nothing: matrix units compute none of its stages, or its tiles are of another form.
std::optional<MatrixTiles> MatrixTilesOf(const schedule::State& state);

// Changes at least one length; what becomes of it still fits the unit. False: no draw of a few did.
// The tile may be too large for a device or for a thread, which a check of the schedule finds.
bool MoveMatrixTiles(MatrixTiles& tiles, Rng& rng);

}  // namespace kiln::search
