// Bound inference: for every computed stage the region of its output that it must cover, the
// extents of its loops, and the values of its axes as sums of the program's loop variables.
//
// Consumers come before producers. A root stage covers its whole tensor. A stage attached to loop l
// of stage t covers what all its readers touch while t's loops up to l (and those outside t) stand
// still and all others run: per dimension an interval [min, min + extent) with a static extent and
// a min that is a sum of the standing loops' variables.
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
  // What is stored where these do not hold is 0: a tile in shared memory, whole although its tensor
  // ends inside of it.
  std::vector<ir::Expr> fill_guards;
  // Iterations outside of the tensor, of its axes or of its reductions, need no guard.
  bool computes_outside = false, adds_zeros_outside = false;
};

// Everything the later passes need; they share the simplifier and with it the program's variables.
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

// The conditions under which an iteration of the stage is real, given iterator values: inexact
// splits, and axis values that can leave the tensor; but for those that the stage needs none for.
// reductions: also those that involve reduce axes.
std::vector<ir::Expr> Guards(const schedule::Stage& stage, const StageBounds& bounds,
                             const std::vector<arith::Linear>& iter_values, bool reductions,
                             arith::Simplifier& simplifier);

// Of those, that the axis values are inside the tensor.
std::vector<ir::Expr> AxisGuards(const schedule::Stage& stage, const StageBounds& bounds,
                                 const std::vector<arith::Linear>& iter_values,
                                 arith::Simplifier& simplifier);

}  // namespace kiln::lower
