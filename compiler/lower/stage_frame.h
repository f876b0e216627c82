// A stage whose nest is being built: its loops, and the loop at which each of its guards stands.
//
// A guard stands at the outermost loop inside which all its variables are bound. A guard inside a
// reduction may depend on spatial variables only. It then holds in the whole tile, in a part of it,
// or nowhere; the reduction is built in two versions, one for whole tiles.
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
  enum { kAnyTile, kWholeTile, kTailTile } tile = kAnyTile;  // the version that is emitted

  int num_loops() const { return static_cast<int>(stage.loops.size()); }
  int64_t ExtentOf(int loop) const { return bounds.iter_extents[stage.loops[loop].iter]; }

  // Is the guard inside the reduction, and true in a whole tile?
  bool HoldsInTile(size_t guard) const;
  // Is the guard outside the reduction loops, and with that outside the initialisation too?
  bool IsOutsideReduction(ir::Expr guard) const;
};

// Two conditions that stand outside a reduction whose guards of spatial axes stand inside: `whole`
// says that all these guards hold in the whole tile, `some` that they may hold somewhere in it.
// Null: there is no such condition.
struct TileConditions {
  ir::Expr whole = nullptr, some = nullptr;
};
TileConditions TileConditionsOf(const StageFrame& frame, arith::Simplifier& simplifier);

}  // namespace kiln::lower
