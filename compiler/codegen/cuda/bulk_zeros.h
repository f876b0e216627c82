// Zeros of tiles that the bulk copy engine brings (bulk_copies.h, bulk_visits.h). Internal to this
// folder.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "compiler/arith/linear.h"
#include "compiler/codegen/cuda/exprs.h"
#include "compiler/codegen/cuda/scope.h"
#include "compiler/ir/expr.h"

namespace kiln::codegen {

// Does the form have a term with the variable?
bool UsesVar(const arith::Linear& form, int32_t var);

// Checks that a copied value is zero nowhere but beyond the ends of its array, which has this shape
// and is read at `places`. InvalidArgument names the condition that says something else.
Status CheckZeros(ir::Expr value, std::span<const int64_t> shape,
                  const std::vector<arith::Linear>& places, CudaScope& scope, CudaExprs& exprs);

}  // namespace kiln::codegen
