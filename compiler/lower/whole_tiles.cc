#include "compiler/lower/whole_tiles.h"

#include <algorithm>
#include <utility>

#include "compiler/ir/rewrite.h"
#include "compiler/ir/substitution.h"
#include "compiler/ir/traverse.h"

namespace kiln::lower {
namespace {

using ir::Expr;
using ir::Stmt;
using ir::StmtKind;

// Finds the names that a statement binds, and makes new ones for them.
class Renamer {
 public:
  Renamer(ir::Program& program, const std::function<int32_t(int32_t)>& copy_var)
      : program_(program), copy_var_(copy_var) {}

  ir::Substitution NamesFor(Stmt s) {
    Collect(s);
    return std::move(names_);
  }

 private:
  void Collect(Stmt s) {
    if (s->kind == StmtKind::kFor) names_.SetVar(s->var, program_.pool->Var(copy_var_(s->var)));
    if (s->kind == StmtKind::kAlloc) names_.SetSlot(s->slot, CopyBuffer(s->slot));
    for (Stmt child : s->children()) Collect(child);
  }

  int32_t CopyBuffer(int32_t slot) {
    ir::Buffer copy = program_.buffers[static_cast<size_t>(slot)];
    copy.name += "_end";
    return ir::AddBuffer(program_, std::move(copy));
  }

  ir::Program& program_;
  const std::function<int32_t(int32_t)>& copy_var_;
  ir::Substitution names_;
};

// Returns the guard for those inner values for which it is hardest, or easiest, to hold. Null: the
// condition is not known, or is always the same.
Expr Extreme(Expr guard, std::span<const int32_t> inner, bool hardest,
             arith::Simplifier& simplifier) {
  const bool is_below = guard->op == ir::Op::kLt;
  if ((!is_below && guard->op != ir::Op::kGe) || ir::HasLoad(guard)) return nullptr;
  // The guard is difference < 0, or difference >= 0.
  const arith::Linear difference =
      simplifier.ToLinear(guard->arg(0)) - simplifier.ToLinear(guard->arg(1));
  arith::Linear varying, fixed = difference;
  for (const arith::Term& term : difference.terms) {
    if (std::ranges::none_of(inner, [&](int32_t v) { return v >= 0 && ir::UsesVar(term.atom, v); }))
      continue;
    const arith::Linear one{0, {term}};
    varying = varying + one;
    fixed = fixed - one;
  }
  const arith::Interval range = simplifier.RangeOf(varying);
  if (!range.bounded()) return nullptr;
  fixed.constant += is_below == hardest ? range.hi : range.lo;
  const arith::Interval all = simplifier.RangeOf(fixed);
  if (all.lo >= 0 || all.hi < 0) return nullptr;
  const int64_t limit = -fixed.constant;
  fixed.constant = 0;
  ir::ExprPool& pool = simplifier.pool();
  return is_below ? pool.Lt(simplifier.ToExpr(fixed), pool.Int(limit))
                  : pool.Ge(simplifier.ToExpr(fixed), pool.Int(limit));
}

}  // namespace

Expr HoldsForAll(Expr guard, std::span<const int32_t> inner, arith::Simplifier& simplifier) {
  return Extreme(guard, inner, true, simplifier);
}

Expr HoldsForSome(Expr guard, std::span<const int32_t> inner, arith::Simplifier& simplifier) {
  return Extreme(guard, inner, false, simplifier);
}

Stmt CopyWithOwnNames(ir::Program& program, Stmt s,
                      const std::function<int32_t(int32_t)>& copy_var) {
  return ir::Substitute(*program.pool, s, Renamer(program, copy_var).NamesFor(s));
}

}  // namespace kiln::lower
