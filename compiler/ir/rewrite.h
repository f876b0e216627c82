// Rebuilding of statements, for passes that change programs.
//
// Statements are immutable. Each function returns the statement itself if nothing in it changes,
// else a new statement in the pool, which must be the pool of the given statements. A pass handles
// the kinds of statements that it changes, and leaves the others to RewriteChildren:
//
//   Stmt Rewrite(Stmt s) {
//     if (s->kind == StmtKind::kStore) return ...;
//     return RewriteChildren(pool_, s, [&](Stmt child) { return Rewrite(child); });
//   }
//
// Cost: a node and its lists for each statement on the way from a change to the root.
#pragma once

#include <cstdint>
#include <span>

#include "absl/container/inlined_vector.h"
#include "compiler/ir/program.h"
#include "compiler/ir/substitution.h"

namespace kiln::ir {

// Returns the statement with other children, as many as it has.
Stmt WithChildren(ExprPool& pool, Stmt stmt, std::span<const Stmt> children);
// The statement must have one child.
Stmt WithBody(ExprPool& pool, Stmt stmt, Stmt body);
Stmt WithKind(ExprPool& pool, Stmt loop, LoopKind kind, Stmt body);

// Returns the statement with rewrite(child) in place of each child. The calls are in the children's
// order.
template <typename Rewrite>
Stmt RewriteChildren(ExprPool& pool, Stmt stmt, const Rewrite& rewrite) {
  absl::InlinedVector<Stmt, 4> children;
  for (Stmt child : stmt->children()) children.push_back(rewrite(child));
  return WithChildren(pool, stmt, children);
}

// Returns the statement with other variables and buffers in loads, stores, allocations and loops. A
// loop over a variable that is replaced becomes a loop over the new variable.
Stmt Substitute(ExprPool& pool, Stmt stmt, const Substitution& names);

// Returns true for a sequence of no statements, which does nothing. MakeSeq leaves it out of
// sequences.
bool IsEmpty(Stmt stmt);

}  // namespace kiln::ir
