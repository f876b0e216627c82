// Tiles of inputs that all threads of a block copy to shared memory, as matrix units read them:
// rows of whole pieces of 16 bytes, an odd number of them apart, so that eight rows are in banks of
// their own; or as they are, where the pieces are permuted (Hint::kSwizzle).
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/program.h"
#include "compiler/lower/loop_writer.h"

namespace kiln::lower {

// One axis of a tile.
struct TileAxis {
  int32_t var = -1;    // of the load
  int64_t extent = 1;  // of the tile
  int64_t limit = 1;   // of the tensor: beyond it are zeros
};

struct SharedTile {
  ir::Expr load = nullptr;  // of the input, over the variables of the axes and others
  TileAxis outer, inner;    // dimensions of the tile; along the inner one elements are neighbours
  int64_t lanes = 1;        // copied at once
  bool is_swizzled = false;
  int32_t slot = -1, stage = -1;

  // Asynchronous copies have at least 4 bytes.
  bool may_be_async() const { return lanes * load->type.bytes() >= 4; }
};

// The inner axis is the second one, unless the load has its neighbours along the first one. `shape`:
// of the input. The rest of the tile is the caller's.
SharedTile MakeSharedTile(ir::Expr load, const std::vector<int64_t>& shape, TileAxis a, TileAxis b);

// Of its buffer: rows are padded, unless they are swizzled.
std::vector<int64_t> ShapeOf(const SharedTile& tile);
// The indices of element (a, b) of the axes of these variables.
std::vector<ir::Expr> PlaceIn(const SharedTile& tile, int32_t a_var, ir::Expr a, ir::Expr b);

// What `threads` threads, of which this is number `thread`, do to copy the tile. element(outer, inner)
// is the input's element at those numbers within the tile; `inside` says of them whether it exists,
// null: always.
ir::Stmt CopyTile(LoopWriter& write, const SharedTile& tile, ir::Expr thread, int64_t threads,
                  bool is_async, absl::FunctionRef<ir::Expr(ir::Expr, ir::Expr)> element,
                  absl::FunctionRef<ir::Expr(ir::Expr, ir::Expr)> inside, ir::ExprPool& pool);

}  // namespace kiln::lower
