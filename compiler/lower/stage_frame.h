// A stage whose nest is being built: its loops and where its guards stand among them.
//
// Guards stand at the outermost loop that knows their variables. Those inside a reduction that no
// reduction loop decides about hold in all of a tile, or in none or part of it: what it takes to
// build two versions of the reduction.
#pragma once

#include <vector>

#include "compiler/arith/simplify.h"
#include "compiler/ir/expr.h"
#include "compiler/lower/bounds.h"
#include "compiler/schedule/state.h"

namespace kiln::lower {

struct StageFrame {
  // outermost_guard: the first loop that guards may stand at.
  StageFrame(int stage_number, const schedule::Stage& stage, const StageBounds& bounds,
             int outermost_guard);

  int s;
  const schedule::Stage& stage;
  const StageBounds& bounds;
  int first_reduce;               // loop number; number of loops when there is none
  std::vector<int> guard_levels;  // per guard: the loop at which all its variables are known, -1:
                                  // outside the stage
  enum { kAnyTile, kWholeTile, kPartTile } tile = kAnyTile;  // what is emitted is for

  int num_loops() const { return static_cast<int>(stage.loops.size()); }
  int64_t ExtentOf(int loop) const { return bounds.iter_extents[stage.loops[loop].iter]; }

  // A guard inside the reduction that holds in a whole tile.
  bool HoldsInTile(size_t guard) const;
  // Is the guard outside the reduction loops, and with that outside the initialisation too?
  bool StandsAround(ir::Expr guard) const;
};

// Of a reduction with guards of spatial axes inside, as conditions that stand outside: that they
// all hold in the whole tile, and that they may somewhere in it. Null: there is none.
struct TileConditions {
  ir::Expr whole = nullptr, some = nullptr;
};
TileConditions TileConditionsOf(const StageFrame& frame, arith::Simplifier& simplifier);

}  // namespace kiln::lower
