// The value of every iterator of a stage as an expression of its loop variables, computed in the
// obvious way through the split and fuse relations. Used where a stage is rewritten (rfactor), and
// in tests as the reference for lowering.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "compiler/ir/expr.h"
#include "compiler/schedule/state.h"

namespace kiln::schedule {

// Returns the extents of all of Stage::iters if axis i runs over [0, axis_extents[i]), which is the
// whole axis or a region of it. Refuses blank lengths and products that overflow.
StatusOr<std::vector<int64_t>> IterExtents(const Stage& stage,
                                           std::span<const int64_t> axis_extents);
// Returns the extents for the whole operator.
StatusOr<std::vector<int64_t>> IterExtents(const Stage& stage);

struct IterMap {
  // Indexed like Stage::iters. The axes come first.
  std::vector<ir::Expr> values;
  // Condition that the iteration is inside the axes, because the loops of inexact splits overhang
  // them. It is a conjunction, and each part may rely on the parts before it. Bool(true) if every
  // split is exact.
  ir::Expr inside;
};

// loop_vars[i] is the value of loop i, in [0, its extent). `extents` are those of IterExtents.
IterMap MapIters(const Stage& stage, std::span<const ir::Expr> loop_vars,
                 std::span<const int64_t> extents, ir::ExprPool& pool);

}  // namespace kiln::schedule
