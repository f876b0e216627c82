// Expressions of 16-bit floats, computed in float32 without the roundings of a network between its
// nodes. The values differ by those roundings only. Pure functions.
#pragma once

#include <optional>

#include "compiler/ir/expr.h"

namespace kiln::dag {

// Returns an expression of float32, or of a float of 16 bits, in float32, without the roundings to
// 16 bits between its parts. Conditions in it stay as they are. An expression of another type stays
// itself.
ir::Expr Unrounded(ir::ExprPool& pool, ir::Expr e);

// The product load * scale.
struct ScaledLoad {
  ir::Expr load;
  double scale;
};
// Takes a load apart that is multiplied and divided by numbers and rounded to floats of at least 16
// bits, in any order. None: it is another expression.
std::optional<ScaledLoad> AsScaledLoad(ir::Expr e);

}  // namespace kiln::dag
