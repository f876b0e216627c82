// Tiles at the end of an axis stick out of it; all others are whole, and need no guards. What it
// takes to make two versions of a loop nest.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "compiler/arith/simplify.h"
#include "compiler/ir/program.h"

namespace kiln::lower {

// A condition without the variables `inner` under which the guard holds for all their values; null
// where none is known, or where it never holds. Guards are comparisons as bounds.h makes them.
ir::Expr HoldsForAll(ir::Expr guard, std::span<const int32_t> inner, arith::Simplifier& simplifier);

// One without which it holds for none of them; null where none is known, or where it always holds.
ir::Expr HoldsForSome(ir::Expr guard, std::span<const int32_t> inner,
                      arith::Simplifier& simplifier);

// The same statement with variables and buffers of its own wherever it binds them. copy_var makes a
// variable like the given one.
ir::Stmt CopyWithOwnNames(ir::Program& program, ir::Stmt s,
                          const std::function<int32_t(int32_t var)>& copy_var);

}  // namespace kiln::lower
