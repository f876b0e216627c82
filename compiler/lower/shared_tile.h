// Tiles of inputs that all threads of a block copy to shared memory for matrix units. A row is a
// number of pieces of 16 bytes. Rows are padded to an odd number of pieces, so that eight rows lie
// in different banks. They are not padded if the pieces are permuted (Hint::kSwizzle).
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/program.h"
#include "compiler/lower/loop_writer.h"

namespace kiln::lower {

// One axis of a tile.
struct TileAxis {
  // Variable of the load.
  int32_t var = -1;
  // Extent of the tile.
  int64_t extent = 1;
  // Extent of the tensor. Beyond it are zeros.
  int64_t limit = 1;
};

struct SharedTile {
  // The load of the input, over the variables of the axes and others.
  ir::Expr load = nullptr;
  // Dimensions of the tile. Elements are neighbours along the inner one.
  TileAxis outer, inner;
  // Number of elements that are copied at once.
  int64_t lanes = 1;
  bool is_swizzled = false;
  int32_t slot = -1, stage = -1;

  // Asynchronous copies have at least 4 bytes.
  bool may_be_async() const { return lanes * load->type.bytes() >= 4; }
};

// The inner axis is the second one, unless the load has its neighbours along the first one. `shape`
// is that of the input. The caller sets the remaining fields of the tile.
SharedTile MakeSharedTile(ir::Expr load, const std::vector<int64_t>& shape, TileAxis a, TileAxis b);

// Returns the shape of the tile's buffer. Rows are padded unless they are swizzled.
std::vector<int64_t> ShapeOf(const SharedTile& tile);
// Returns the indices of element (a, b) of the axes of these variables.
std::vector<ir::Expr> PlaceIn(const SharedTile& tile, int32_t a_var, ir::Expr a, ir::Expr b);

// Emits the copy of the tile by `threads` threads, of which this one has the number `thread`.
// element(outer, inner) is the input's element at those numbers within the tile. `inside` returns
// the condition that the element exists. Null: always.
ir::Stmt CopyTile(LoopWriter& write, const SharedTile& tile, ir::Expr thread, int64_t threads,
                  bool is_async, absl::FunctionRef<ir::Expr(ir::Expr, ir::Expr)> element,
                  absl::FunctionRef<ir::Expr(ir::Expr, ir::Expr)> inside, ir::ExprPool& pool);

}  // namespace kiln::lower
