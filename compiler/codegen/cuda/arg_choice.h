// The choices of argmax and argmin over floats, as a GPU evaluates them best. Internal to this
// folder.
//
// dag::Combine asks first whether an element is worse than the best so far: a CPU takes one branch
// for most elements. A GPU evaluates every comparison, at half the rate of other instructions, so
// that fewer comparisons are faster there. Both forms choose alike for all values, NaN and both
// zeros included.
#pragma once

#include "compiler/ir/expr.h"

namespace kiln::codegen {

// Returns the condition by which a kSelect of argmax or argmin takes an index, with five
// comparisons:
//   !(value <= best) && best == best || index < best_index && (value == best || value != value)
// Returns null for every other choice. The nodes are of `pool`. Cost: constant.
ir::Expr ShortIndexChoice(ir::Expr select, ir::ExprPool& pool);

// Returns max(best, value) or min(best, value) for a kSelect by which argmax or argmin over float32
// takes a value, null for every other choice. The sign of a zero may differ, which no result of
// argmax and argmin shows. The node is of `pool`. Cost: constant.
ir::Expr ExtremeOfValueChoice(ir::Expr select, ir::ExprPool& pool);

}  // namespace kiln::codegen
