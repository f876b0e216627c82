// Conditions on data, which the threads of a warp evaluate whole. Internal to this folder.
//
// && and || of C are branches unless the compiler proves that the right side may be evaluated in
// any case. A branch on data keeps the compiler from reading the elements of the next iterations
// ahead, so that a loop waits for memory once an element.
#pragma once

#include <span>

#include "compiler/ir/expr.h"

namespace kiln::codegen {

// Returns whether `condition` compares floats. Cost: linear in the nodes.
bool ComparesFloats(ir::Expr condition);

// Returns whether all of `condition` may be evaluated in any case at little cost: it has no call,
// choice or division of integers that it does not evaluate in any case, and each element that it
// may read is one that it or one of `also_read` reads whatever the values are. Cost: linear in the
// nodes.
bool IsEvaluatedWhole(ir::Expr condition, std::span<const ir::Expr> also_read);

}  // namespace kiln::codegen
