// Bound inference: for every computed stage the region of its output that it must cover, the
// extents of its loops, and the values of its axes as sums of the program's loop variables.
//
// Consumers come before producers. A root stage covers its whole tensor. A stage attached to loop l
// of stage t covers all elements that its readers touch during one iteration of l: t's loops up to
// l, and those outside t, are fixed; all others vary. The region is an interval [min, min + extent)
// for each dimension. The extent is static. The min is a sum of variables of the fixed loops, so
// the other loops do not change it.
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
  // The loop is not unrolled automatically.
  bool stays_loop = false;
};

// The index of a dimension of a tile whose elements an integer input chooses one by one: the tile
// of x[rows[i], k] has the rows that rows[i] numbers. Then region_min and region_extent count
// places in the input, not elements of the dimension (lower/indexed_regions.h).
struct ChosenPlaces {
  // A load of the input, in casts. Null: nothing chooses the elements.
  ir::Expr index = nullptr;
  // The argument of the load that is the place, and the end of the places.
  size_t argument = 0;
  int64_t extent = 0;
};

struct StageBounds {
  // False for a placeholder or an inlined stage, whose other fields are empty.
  bool computed = false;
  // Indexed by spatial axis. Empty: an input chooses no elements of any dimension.
  std::vector<ChosenPlaces> chosen;
  // Indexed by spatial axis.
  std::vector<arith::Linear> region_min;
  // Indexed by spatial axis.
  std::vector<int64_t> region_extent;
  // Indexed like Stage::iters.
  std::vector<int64_t> iter_extents;
  // Indexed by loop: the program variable, or -1 for a loop that runs once.
  std::vector<int32_t> loop_vars;
  // Indexed like Stage::iters. Axes are relative to region_min.
  std::vector<arith::Linear> iter_values;
  // Indexed by axis, in tensor coordinates.
  std::vector<arith::Linear> axis_values;
  // Conditions of an iteration. None is trivially true.
  std::vector<ir::Expr> guards;
  // If these do not hold, 0 is stored: a tile in shared memory is filled whole, even if it
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
  // Indexed by program variable.
  std::vector<LoopOwner> owners;
  std::vector<StageBounds> stages;
};

// Refuses blanks, attachments that make no sense (a reader outside the loop that its producer is
// attached to), and nests and iterations beyond dag/limits.h. Cancelled if `stop` is requested.
StatusOr<std::unique_ptr<Bounds>> InferBounds(const schedule::State& state, bool gpu,
                                              const std::stop_token& stop = {});

// Works like InferBounds but finds only the extents: region_min, region_extent and iter_extents of
// each computed stage.
StatusOr<std::unique_ptr<Bounds>> InferExtents(const schedule::State& state, bool gpu,
                                               const std::stop_token& stop = {});

// Returns the guards of the stage for these iterator values: the conditions that an iteration lies
// inside the axes (of inexact splits) and inside the tensor. Conditions that the stage does not
// need are left out. `reductions` includes the guards of reduce axes.
std::vector<ir::Expr> Guards(const schedule::Stage& stage, const StageBounds& bounds,
                             const std::vector<arith::Linear>& iter_values, bool reductions,
                             arith::Simplifier& simplifier);

// Returns only the guards that keep axis values inside the tensor.
std::vector<ir::Expr> AxisGuards(const schedule::Stage& stage, const StageBounds& bounds,
                                 const std::vector<arith::Linear>& iter_values,
                                 arith::Simplifier& simplifier);

}  // namespace kiln::lower
