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

// The statement with other children, as many as it has.
Stmt WithChildren(ExprPool& pool, Stmt stmt, std::span<const Stmt> children);
Stmt WithBody(ExprPool& pool, Stmt stmt, Stmt body);  // of one child
Stmt WithKind(ExprPool& pool, Stmt loop, LoopKind kind, Stmt body);

// The statement with rewrite(child) in place of each child; called in their order.
template <typename Rewrite>
Stmt RewriteChildren(ExprPool& pool, Stmt stmt, const Rewrite& rewrite) {
  absl::InlinedVector<Stmt, 4> children;
  for (Stmt child : stmt->children()) children.push_back(rewrite(child));
  return WithChildren(pool, stmt, children);
}

// The statement with other variables and buffers everywhere in it: in loads, stores, allocations
// and loops. A loop over a variable that is replaced becomes a loop over the variable in its place.
Stmt Substitute(ExprPool& pool, Stmt stmt, const Substitution& names);

// Is it a sequence of no statements, which does nothing? MakeSeq leaves it out of sequences.
bool IsEmpty(Stmt stmt);

}  // namespace kiln::ir
