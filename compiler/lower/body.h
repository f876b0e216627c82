// The body of a stage as an expression of the program: axes are replaced by their values, and
// inlined producers are substituted.
#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "compiler/arith/simplify.h"
#include "compiler/schedule/state.h"

namespace kiln::lower {

// Returns the replacement for a read of `stage`'s output `output` at `indices` (tensor
// coordinates).
using ReadFn = absl::FunctionRef<ir::Expr(
    int stage, int output, const std::vector<arith::Linear>& indices, ir::Type type)>;

// Returns bodies()[output] of stage s with axis i at axis_values[i].
ir::Expr LowerBody(const schedule::State& state, int s, int output,
                   const std::vector<arith::Linear>& axis_values, arith::Simplifier& simplifier,
                   ReadFn read);

// Calls `read` as LowerBody does, for the indices at which stages that are `wanted` are read.
// Inlined stages that read no wanted stage need not be visited.
void VisitReads(const schedule::State& state, int s, int output,
                const std::vector<arith::Linear>& axis_values, arith::Simplifier& simplifier,
                const std::vector<bool>& wanted, ReadFn read);

}  // namespace kiln::lower
