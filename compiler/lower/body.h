// The body of a stage as an expression of the program: axes replaced by their values, inlined
// producers substituted.
#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "compiler/arith/simplify.h"
#include "compiler/schedule/state.h"

namespace kiln::lower {

// What to put for a read of `stage`'s output `output` at `indices` (tensor coordinates).
using ReadFn = absl::FunctionRef<ir::Expr(
    int stage, int output, const std::vector<arith::Linear>& indices, ir::Type type)>;

// bodies()[output] of stage s with axis i at axis_values[i].
ir::Expr LowerBody(const schedule::State& state, int s, int output,
                   const std::vector<arith::Linear>& axis_values, arith::Simplifier& simplifier,
                   ReadFn read);

// Asks `read` as LowerBody does, for the sake of what stages that are `wanted` are read at. Inlined
// stages in which nothing wanted is read need not be visited.
void VisitReads(const schedule::State& state, int s, int output,
                const std::vector<arith::Linear>& axis_values, arith::Simplifier& simplifier,
                const std::vector<bool>& wanted, ReadFn read);

}  // namespace kiln::lower
