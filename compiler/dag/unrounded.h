// Expressions of 16-bit floats as float32 computes them: what a network rounds between its nodes
// keeps its digits. The values differ by those roundings and by nothing else. Pure functions.
#pragma once

#include <optional>

#include "compiler/ir/expr.h"

namespace kiln::dag {

// An expression of float32 or a float of 16 bits in float32, without the roundings to 16 bits
// between its parts; conditions in it stay as they are. An expression of another type stays itself.
ir::Expr Unrounded(ir::ExprPool& pool, ir::Expr e);

// load * scale.
struct ScaledLoad {
  ir::Expr load;
  double scale;
};
// A load, multiplied and divided by numbers and rounded to floats of at least 16 bits in any order.
// None: it is another expression.
std::optional<ScaledLoad> AsScaledLoad(ir::Expr e);

}  // namespace kiln::dag
