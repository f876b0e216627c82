// Moves between neighbouring tiles of matrix units (search/space/matrix_tile.h).
//
// Such a tile has threads in fixed places, and hardly any move of tile_moves.h leaves a tile of
// matrix units. The moves here change how many rows, columns and warps a block has, which axes its
// rows belong to, and how deep a step of the sum is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/numbers/rng.h"
#include "compiler/schedule/state.h"
#include "search/space/matrix_product.h"
#include "search/space/matrix_tile.h"

namespace kiln::search {

// The tile lengths of the stage that matrix units compute.
struct MatrixTiles {
  MatrixProduct product;
  ir::MatrixUnitScope scope = ir::MatrixUnitScope::kWarp;
  MatrixSplits splits;
  std::optional<size_t> depth = {};  // the one of splits.reductions whose steps the unit takes
};

// Returns those of all stages of the state that matrix units compute, but for tiles of another
// form.
std::vector<MatrixTiles> MatrixTilesOf(const schedule::State& state);

// Changes at least one length, so that the tile still fits the unit. Returns false if a few draws
// find no such change. The tile may be too large for the device or for a thread; the check of the
// schedule finds that.
bool MoveMatrixTiles(MatrixTiles& tiles, Rng& rng);

}  // namespace kiln::search
