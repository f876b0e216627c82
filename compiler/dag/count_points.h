// Counts the points of an operator's axes in a region that conditions cut out of them.
//
// Pure functions, any thread.
#pragma once

#include <cstdint>
#include <span>

#include "compiler/dag/dag.h"

namespace kiln::dag {

// Returns the number of points of all axes for which each condition holds. A condition is `variable
// < affine sum of variables before it` for a variable of a reduce axis (numbers as in bodies); each
// variable has at most one. The result is exact if the axes that the sums read have at most 2^18
// points. Beyond that each sum counts with its value in the middle.
double CountPoints(std::span<const Axis> axes, std::span<const Axis> reduce_axes,
                   std::span<const ir::Expr> conditions);

}  // namespace kiln::dag
