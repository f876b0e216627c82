#include "compiler/lower/stage_frame.h"

#include <algorithm>

#include "compiler/ir/traverse.h"
#include "compiler/lower/whole_tiles.h"

namespace kiln::lower {
namespace {

using schedule::Annotation;
using schedule::IterKind;
using schedule::Stage;

int FirstReduce(const Stage& stage) {
  const int n = static_cast<int>(stage.loops.size());
  for (int i = 0; i < n; ++i) {
    if (stage.loop(i).kind != IterKind::kSpatial && stage.loop(i).kind != IterKind::kSpecial)
      return i;
  }
  return n;
}

int GuardLevel(const StageFrame& frame, ir::Expr guard) {
  int level = -1;
  ir::Visit(guard, [&](ir::Expr e) {
    if (e->op != ir::Op::kVar) return;
    for (int i = 0; i < static_cast<int>(frame.bounds.loop_vars.size()); ++i) {
      if (frame.bounds.loop_vars[i] == e->id) level = std::max(level, i);
    }
  });
  return level;
}

// Returns true if the guard does not depend on a reduction loop.
bool IsSpatial(const StageFrame& frame, ir::Expr guard) {
  for (int i = frame.first_reduce; i < frame.num_loops(); ++i) {
    if (frame.stage.loop(i).kind != IterKind::kSpatial && frame.bounds.loop_vars[i] >= 0 &&
        ir::UsesVar(guard, frame.bounds.loop_vars[i]))
      return false;
  }
  return true;
}

bool DependsOnLane(const StageFrame& frame, ir::Expr condition) {
  for (int i = 0; i < frame.first_reduce; ++i) {
    const int32_t var = frame.bounds.loop_vars[i];
    if (frame.stage.annotation(i) == Annotation::kVectorize && var >= 0 &&
        ir::UsesVar(condition, var))
      return true;
  }
  return false;
}

}  // namespace

StageFrame::StageFrame(int stage_number, const Stage& st, const StageBounds& b, int outermost_guard)
    : s(stage_number), stage(st), bounds(b), first_reduce(FirstReduce(st)) {
  for (ir::Expr guard : bounds.guards)
    guard_levels.push_back(std::max(GuardLevel(*this, guard), outermost_guard));
}

bool StageFrame::HoldsInTile(size_t guard) const {
  return tile == kWholeTile && guard_levels[guard] >= first_reduce &&
         IsSpatial(*this, bounds.guards[guard]);
}

bool StageFrame::IsOutsideReduction(ir::Expr guard) const {
  for (size_t g = 0; g < guard_levels.size(); ++g) {
    if (bounds.guards[g] == guard) return guard_levels[g] < first_reduce;
  }
  return false;
}

TileConditions TileConditionsOf(const StageFrame& frame, arith::Simplifier& simplifier) {
  std::vector<int32_t> inner;
  for (int i = frame.first_reduce; i < frame.num_loops(); ++i)
    inner.push_back(frame.bounds.loop_vars[i]);
  const auto both = [&](ir::Expr a, ir::Expr b) {
    return a == nullptr ? b : b == nullptr ? a : simplifier.pool().And(a, b);
  };
  TileConditions tile;
  for (size_t g = 0; g < frame.guard_levels.size(); ++g) {
    const ir::Expr guard = frame.bounds.guards[g];
    if (frame.guard_levels[g] < frame.first_reduce || !IsSpatial(frame, guard)) continue;
    const ir::Expr always = HoldsForAll(guard, inner, simplifier);
    // Lanes of one vector would take different branches.
    if (always == nullptr || DependsOnLane(frame, always)) return {};
    tile.whole = both(tile.whole, always);
    tile.some = both(tile.some, HoldsForSome(guard, inner, simplifier));
  }
  return tile;
}

}  // namespace kiln::lower
