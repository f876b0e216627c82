// Bound inference: for every computed stage the region of its output that it must cover, the
// extents of its loops, and the values of its axes as sums of the program's loop variables.
//
// Consumers come before producers. A root stage covers its whole tensor. A stage attached to loop l
// of stage t covers all elements that its readers touch during one iteration of l: t's loops up to
// l, and those outside t, are fixed; all others vary. The region is an interval
// [min, min + extent) for each dimension. The extent is static; min is a sum of variables of the
// fixed loops, so it is invariant in the others.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "compiler/arith/simplify.h"
#include "compiler/ir/program.h"
#include "compiler/schedule/state.h"

namespace kiln::lower {

struct LoopOwner {
  int32_t stage, loop;
  bool stays_loop = false;  // is not unrolled automatically
};

struct StageBounds {
  bool computed = false;                   // false: placeholder or inlined; the rest is empty
  std::vector<arith::Linear> region_min;   // per spatial axis
  std::vector<int64_t> region_extent;      // per spatial axis
  std::vector<int64_t> iter_extents;       // per Stage::iters
  std::vector<int32_t> loop_vars;          // per loop: program variable, -1 when it runs once
  std::vector<arith::Linear> iter_values;  // per Stage::iters; axes are relative to region_min
  std::vector<arith::Linear> axis_values;  // per axis, in tensor coordinates
  std::vector<ir::Expr> guards;            // conditions of an iteration; never trivially true
  // Where these do not hold, 0 is stored: a tile in shared memory is filled whole, also where it
  // overhangs the end of its tensor.
  std::vector<ir::Expr> fill_guards;
  // Iterations beyond the end of a spatial axis, or of a reduction, need no guard.
  bool computes_outside = false, adds_zeros_outside = false;
};

// The result of bound inference. Later passes share its simplifier, and with it the program's
// variables.
struct Bounds {
  explicit Bounds(std::shared_ptr<ir::ExprPool> p) : pool(std::move(p)), simplifier(*pool) {}
  std::shared_ptr<ir::ExprPool> pool;
  arith::Simplifier simplifier;
  std::vector<LoopOwner> owners;  // of each program variable
  std::vector<StageBounds> stages;
};

// Refuses blanks, and attachments that do not make sense: a reader outside the loop it is attached
// to, nests and iterations beyond dag/limits.h. Cancelled when `stop` is requested.
StatusOr<std::unique_ptr<Bounds>> InferBounds(const schedule::State& state, bool gpu,
                                              const std::stop_token& stop = {});

// What InferBounds finds, for the sake of the extents: of each computed stage region_min,
// region_extent and iter_extents are set.
StatusOr<std::unique_ptr<Bounds>> InferExtents(const schedule::State& state, bool gpu,
                                               const std::stop_token& stop = {});

// The guards of the stage for these iterator values: the conditions that an iteration lies inside
// the axes (of inexact splits) and inside the tensor. Conditions that the stage does not need are
// left out. reductions: with those of reduce axes.
std::vector<ir::Expr> Guards(const schedule::Stage& stage, const StageBounds& bounds,
                             const std::vector<arith::Linear>& iter_values, bool reductions,
                             arith::Simplifier& simplifier);

// Only the guards that keep axis values inside the tensor.
std::vector<ir::Expr> AxisGuards(const schedule::Stage& stage, const StageBounds& bounds,
                                 const std::vector<arith::Linear>& iter_values,
                                 arith::Simplifier& simplifier);

}  // namespace kiln::lower
