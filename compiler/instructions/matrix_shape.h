// Shapes of tiles that instructions of matrix units compute: threads of a block, and elements of a
// thread. A search asks about schedules, the pass that places the instructions about programs.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/ir/matrix_unit_scope.h"

namespace kiln::instructions {

// A thread has at most so many sums: more than the registers that it can have.
inline constexpr int64_t kMostTileElements = 256;
// Warps that stand beside each other along the columns: 1, 2, 4 or 8.
inline constexpr int64_t kMostWarpColumns = 8;

// Returns why units of this scope can't share a tile out to the threads of a block. So many threads
// have different rows, and so many different columns. "": they can.
std::string WhyNoThreads(ir::MatrixUnitScope scope, int64_t row_threads, int64_t column_threads);

// Returns why units of this scope can't compute a tile. Each thread has so many rows and columns of
// it. "": they can.
std::string WhyNoElements(ir::MatrixUnitScope scope, int64_t rows, int64_t columns);

}  // namespace kiln::instructions
