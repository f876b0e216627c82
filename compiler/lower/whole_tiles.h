// Whole tiles and tail tiles. A tile at the end of an axis may overhang it, and needs guards. All
// other tiles are whole, and need none. These functions serve to make two versions of a loop nest:
// one for whole tiles, one for the tail.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "compiler/arith/simplify.h"
#include "compiler/ir/program.h"

namespace kiln::lower {

// Returns a condition without the variables `inner` under which the guard holds for all their
// values. Null if none is known, or if that condition never holds. Guards must be comparisons of
// the form that bounds.h makes.
ir::Expr HoldsForAll(ir::Expr guard, std::span<const int32_t> inner, arith::Simplifier& simplifier);

// Returns a condition without the variables `inner` that is necessary for the guard to hold for any
// of their values. Null if none is known, or if the condition always holds.
ir::Expr HoldsForSome(ir::Expr guard, std::span<const int32_t> inner,
                      arith::Simplifier& simplifier);

// Returns the same statement with variables and buffers of its own wherever it binds them. copy_var
// makes a variable like the given one.
ir::Stmt CopyWithOwnNames(ir::Program& program, ir::Stmt s,
                          const std::function<int32_t(int32_t var)>& copy_var);

}  // namespace kiln::lower
