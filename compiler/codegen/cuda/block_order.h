// The order in which blocks take the tiles of a matrix product. Internal to this folder.
//
// Blocks are numbered row of tiles by row of tiles, and start in the order of their numbers. Those that
// run at the same time read fewer different rows and columns, more of them from the L2 cache, if they
// are tiles of a compact part of the matrix: so numbers go down some rows of tiles, column by column
// (Triton, "L2 cache optimizations" of its matrix multiplication tutorial).
//
//   0  2  4  6       rows of 4 tiles, in groups of 2
//   1  3  5  7
//   8 10 12 14
//   9 11 13 15
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "compiler/arith/linear.h"

namespace kiln::codegen {

// Tiles of a matrix; there may be several matrices, one behind the other.
struct BlockGrid {
  int64_t rows = 1, columns = 1;
};

// By where tiles start, of the variable that numbers `blocks` blocks. Nothing: they are no tiles of a
// matrix, or those of one row.
std::optional<BlockGrid> FindBlockGrid(std::span<const arith::Linear> starts, int32_t var,
                                       int64_t blocks);

// The number of the tile, in the program's order, of block `number`, a text.
std::string OrderedBlock(const BlockGrid& grid, std::string_view number);
std::string_view BlockOrderDefinition();

}  // namespace kiln::codegen
