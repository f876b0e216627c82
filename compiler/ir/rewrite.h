// Rebuilding of statements: the same ones with other parts. What passes that change programs are
// made of.
//
// Statements are immutable: each function returns the statement itself where nothing changes in it,
// else a new one in the pool, which must be that of the given ones. A pass says what it does to the
// kinds that it changes and leaves the others to RewriteChildren:
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

namespace kiln::ir {

// With as many other children.
Stmt WithChildren(ExprPool& pool, Stmt stmt, std::span<const Stmt> children);
Stmt WithBody(ExprPool& pool, Stmt stmt, Stmt body);  // of one child
Stmt WithKind(ExprPool& pool, Stmt loop, LoopKind kind, Stmt body);

// With what rewrite(child) gives for each child, called in their order.
template <typename Rewrite>
Stmt RewriteChildren(ExprPool& pool, Stmt stmt, const Rewrite& rewrite) {
  absl::InlinedVector<Stmt, 4> children;
  for (Stmt child : stmt->children()) children.push_back(rewrite(child));
  return WithChildren(pool, stmt, children);
}

// With other names everywhere in it: of what it reads, stores to, allocates and loops over. A loop
// over a variable that is replaced is one over the variable that takes its place.
Stmt Substitute(ExprPool& pool, Stmt stmt, const Substitution& names);

// Does nothing: a sequence of no statements. Sequences that it becomes part of are without it.
bool IsEmpty(Stmt stmt);

}  // namespace kiln::ir
