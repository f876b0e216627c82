#include "compiler/codegen/cuda/buffer_use.h"

#include <algorithm>

#include "compiler/ir/traverse.h"

namespace kiln::codegen {

bool UsesBuffer(ir::Stmt stmt, int32_t slot) {
  if (stmt->kind == ir::StmtKind::kStore && stmt->slot == slot) return true;
  bool result = false;
  for (ir::Expr e : stmt->exprs()) {
    ir::Visit(e, [&](ir::Expr node) {
      if (node->op == ir::Op::kLoad && node->id == slot) result = true;
    });
  }
  return result ||
         std::ranges::any_of(stmt->children(), [&](ir::Stmt s) { return UsesBuffer(s, slot); });
}

bool IsCopies(ir::Stmt stmt) {
  if (stmt->kind == ir::StmtKind::kStore) return stmt->is_async;
  return stmt->kind != ir::StmtKind::kBarrier && std::ranges::all_of(stmt->children(), IsCopies);
}

bool RoundsElements(ir::Stmt stmt, const std::set<int32_t>& slots,
                    const std::set<int32_t>& except) {
  if (stmt->kind == ir::StmtKind::kStore && except.contains(stmt->slot)) return false;
  constexpr int kMostBits = 16;
  bool result = false;
  for (ir::Expr e : stmt->exprs()) {
    ir::Visit(e, [&](ir::Expr node) {
      result |= node->op == ir::Op::kCast && node->type.bits <= kMostBits &&
                node->arg(0)->op == ir::Op::kLoad && slots.contains(node->arg(0)->id);
    });
  }
  return result || std::ranges::any_of(stmt->children(), [&](ir::Stmt s) {
           return RoundsElements(s, slots, except);
         });
}

}  // namespace kiln::codegen
