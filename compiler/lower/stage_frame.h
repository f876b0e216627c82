// A stage whose nest is being built: its loops, and the loop at which each of its guards stands.
//
// A guard stands at the outermost loop inside which all its variables are bound. A guard inside a
// reduction may depend on spatial variables only. It then holds in the whole tile, in a part of it,
// or nowhere. The reduction is built in two versions, one of them for whole tiles.
#pragma once

#include <vector>

#include "compiler/arith/simplify.h"
#include "compiler/ir/expr.h"
#include "compiler/lower/bounds.h"
#include "compiler/schedule/state.h"

namespace kiln::lower {

struct StageFrame {
  // `outermost_guard` is the first loop that guards may stand at.
  StageFrame(int stage_number, const schedule::Stage& stage, const StageBounds& bounds,
             int outermost_guard);

  int s;
  const schedule::Stage& stage;
  const StageBounds& bounds;
  // Number of a loop, or the number of loops if there is no reduction.
  int first_reduce;
  // Indexed by guard: the loop at which all its variables are known. -1: outside the stage.
  std::vector<int> guard_levels;
  // The version that is emitted.
  enum { kAnyTile, kWholeTile, kTailTile } tile = kAnyTile;

  int num_loops() const { return static_cast<int>(stage.loops.size()); }
  int64_t ExtentOf(int loop) const { return bounds.iter_extents[stage.loops[loop].iter]; }

  // Returns true if the guard stands inside the reduction and is true in a whole tile.
  bool HoldsInTile(size_t guard) const;
  // Returns true if the guard stands outside the reduction loops, and so outside the initialisation
  // too.
  bool IsOutsideReduction(ir::Expr guard) const;
};

// Two conditions that stand outside a reduction whose guards of spatial axes stand inside. `whole`:
// all these guards hold in the whole tile. `some`: they may hold somewhere in it. Null: there is no
// such condition.
struct TileConditions {
  ir::Expr whole = nullptr, some = nullptr;
};
TileConditions TileConditionsOf(const StageFrame& frame, arith::Simplifier& simplifier);

}  // namespace kiln::lower
