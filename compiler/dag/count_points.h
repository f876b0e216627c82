// How many points of an operator's axes are in a region that conditions cut out of them.
//
// Pure functions, any thread.
#pragma once

#include <cstdint>
#include <span>

#include "compiler/dag/dag.h"

namespace kiln::dag {

// The number of points of all axes for which each condition holds: `variable < affine sum of
// variables before it`, for variables of reduce axes (numbers as in bodies), at most one each.
// Exact where the axes that the sums read have at most 2^18 points; beyond that each sum counts as
// its value in the middle.
double CountPoints(std::span<const Axis> axes, std::span<const Axis> reduce_axes,
                   std::span<const ir::Expr> conditions);

}  // namespace kiln::dag
