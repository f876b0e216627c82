// Conditions on data, which the threads of a warp evaluate whole. Internal to this folder.
//
// && and || of C are branches unless the compiler proves that its right side may be evaluated in any
// case. A branch on data keeps the compiler from reading the elements of the next iterations ahead,
// so that a loop waits for memory once an element.
#pragma once

#include <span>

#include "compiler/ir/expr.h"

namespace kiln::codegen {

// True if `condition` compares floats, and all of it may be evaluated in any case at little cost: it
// calls no function, divides no integers, makes no choice, and each element that it may read is one
// that it or one of `also_read` reads whatever the values are. Cost: linear in the nodes.
bool IsEvaluatedWhole(ir::Expr condition, std::span<const ir::Expr> also_read);

}  // namespace kiln::codegen
