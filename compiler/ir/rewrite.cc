#include "compiler/ir/rewrite.h"

#include <algorithm>

#include "compiler/ir/substitution.h"

namespace kiln::ir {
namespace {

Stmt SubstituteInStore(ExprPool& pool, Stmt store, const Substitution& names) {
  absl::InlinedVector<Expr, 8> indices;
  if (const Expr first = names.FirstIndexOrNull(store->slot)) indices.push_back(first);
  for (Expr index : store->indices()) indices.push_back(pool.Substitute(index, names));
  const Expr value = pool.Substitute(store->value(), names);
  const int32_t slot = names.SlotFor(store->slot);
  if (slot == store->slot && value == store->value() &&
      std::ranges::equal(indices, store->indices()))
    return store;
  return MakeStore(pool, slot, store->stage, indices, value, store->is_async);
}

Stmt SubstituteInLoop(ExprPool& pool, Stmt loop, const Substitution& names) {
  const Stmt body = Substitute(pool, loop->body(), names);
  const Expr var = names.VarOrNull(loop->var);
  if (var == nullptr) return WithBody(pool, loop, body);
  KILN_CHECK(var->op == Op::kVar, "the variable of a loop is replaced by what is none");
  return MakeFor(pool, var->id, loop->extent, loop->loop_kind, body);
}

}  // namespace

Stmt WithChildren(ExprPool& pool, Stmt stmt, std::span<const Stmt> children) {
  if (std::ranges::equal(children, stmt->children())) return stmt;
  switch (stmt->kind) {
    case StmtKind::kFor:
      return MakeFor(pool, stmt->var, stmt->extent, stmt->loop_kind, children[0]);
    case StmtKind::kIf:
      return MakeIf(pool, stmt->condition(), children[0]);
    case StmtKind::kSeq:
      return MakeSeq(pool, children);
    case StmtKind::kAlloc:
      return MakeAlloc(pool, stmt->slot, children[0]);
    case StmtKind::kInstruction:
      return MakeInstruction(pool, stmt->instruction, children[0]);
    case StmtKind::kStore:
    case StmtKind::kBarrier:
    case StmtKind::kCommit:
      break;
  }
  return stmt;
}

Stmt WithBody(ExprPool& pool, Stmt stmt, Stmt body) {
  const Stmt children[] = {body};
  return WithChildren(pool, stmt, children);
}

Stmt WithKind(ExprPool& pool, Stmt loop, LoopKind kind, Stmt body) {
  if (kind == loop->loop_kind) return WithBody(pool, loop, body);
  return MakeFor(pool, loop->var, loop->extent, kind, body);
}

Stmt Substitute(ExprPool& pool, Stmt stmt, const Substitution& names) {
  switch (stmt->kind) {
    case StmtKind::kFor:
      return SubstituteInLoop(pool, stmt, names);
    case StmtKind::kStore:
      return SubstituteInStore(pool, stmt, names);
    case StmtKind::kIf: {
      const Expr condition = pool.Substitute(stmt->condition(), names);
      const Stmt body = Substitute(pool, stmt->body(), names);
      return condition == stmt->condition() ? WithBody(pool, stmt, body)
                                            : MakeIf(pool, condition, body);
    }
    case StmtKind::kAlloc: {
      const Stmt body = Substitute(pool, stmt->body(), names);
      const int32_t slot = names.SlotFor(stmt->slot);
      return slot == stmt->slot ? WithBody(pool, stmt, body) : MakeAlloc(pool, slot, body);
    }
    case StmtKind::kSeq:
    case StmtKind::kInstruction:
      return RewriteChildren(pool, stmt,
                             [&](Stmt child) { return Substitute(pool, child, names); });
    case StmtKind::kBarrier:
    case StmtKind::kCommit:
      break;
  }
  return stmt;
}

bool IsEmpty(Stmt stmt) { return stmt->kind == StmtKind::kSeq && stmt->num_children == 0; }

}  // namespace kiln::ir
