#include "compiler/codegen/cuda_tile_order.h"

#include <algorithm>
#include <vector>

#include "compiler/codegen/affine.h"

namespace kiln::codegen {
namespace {
using ir::Expr;
using ir::LoopKind;
using ir::Op;
using ir::Stmt;
using ir::StmtKind;

bool IsMovable(Stmt stmt) {
  return stmt->kind == StmtKind::kFor && stmt->loop_kind < LoopKind::kBlockX;
}

// The store under nothing but loops and conditions; null when there is more.
Stmt OnlyStore(Stmt stmt) {
  while (stmt->kind == StmtKind::kFor || stmt->kind == StmtKind::kIf) stmt = stmt->body();
  return stmt->kind == StmtKind::kStore ? stmt : nullptr;
}

class Sinker {
 public:
  Sinker(ir::ExprPool& pool, const ir::Program& program) : pool_(pool), program_(program) {}

  Stmt Rewrite(Stmt stmt) {
    if (IsMovable(stmt) && OnlyStore(stmt) != nullptr) return RewriteNest(stmt);
    std::vector<Stmt> children;
    for (Stmt child : stmt->children()) children.push_back(Rewrite(child));
    if (std::ranges::equal(children, stmt->children())) return stmt;
    switch (stmt->kind) {
      case StmtKind::kFor:
        return ir::MakeFor(pool_, stmt->var, stmt->extent, stmt->loop_kind, children[0]);
      case StmtKind::kIf:
        return ir::MakeIf(pool_, stmt->condition(), children[0]);
      case StmtKind::kAlloc:
        return ir::MakeAlloc(pool_, stmt->slot, children[0]);
      default:
        return ir::MakeSeq(pool_, children);
    }
  }

 private:
  Stmt RewriteNest(Stmt stmt) {
    const Stmt store = OnlyStore(stmt);
    std::vector<Stmt> loops;
    Stmt inner = stmt;
    for (; IsMovable(inner); inner = inner->body()) loops.push_back(inner);
    if (!Accumulates(store) || !IsOneToOne(store, loops)) return stmt;
    const auto indexes = [&](Stmt loop) {
      return std::ranges::any_of(store->indices(),
                                 [&](Expr e) { return ir::UsesVar(e, loop->var); });
    };
    std::vector<Stmt> order = loops;
    std::ranges::stable_partition(order, [&](Stmt loop) { return !indexes(loop); });
    // The lanes of a vector stay innermost.
    if (order == loops || std::ranges::any_of(order, [&](Stmt loop) {
          return loop->loop_kind == LoopKind::kVectorized && loop != order.back();
        }))
      return stmt;
    for (size_t i = order.size(); i-- > 0;)
      inner = ir::MakeFor(pool_, order[i]->var, order[i]->extent, order[i]->loop_kind, inner);
    return inner;
  }

  // Reads only the element that it stores, and nothing else that any iteration stores.
  bool Accumulates(Stmt store) const {
    if (program_.buffers[static_cast<size_t>(store->slot)].scope != ir::Scope::kLocal) return false;
    bool result = std::ranges::none_of(store->indices(), ir::HasLoad);
    ir::Visit(store->value(), [&](Expr node) {
      if (node->op == Op::kLoad && node->id == store->slot &&
          !std::ranges::equal(node->args(), store->indices()))
        result = false;
    });
    return result;
  }

  // Do different values of the loops that index the array mean different elements?
  bool IsOneToOne(Stmt store, const std::vector<Stmt>& loops) const {
    LinearForm address;
    int64_t stride = 1;
    const std::vector<int64_t>& shape = program_.buffers[static_cast<size_t>(store->slot)].shape;
    for (size_t i = shape.size(); i-- > 0;) {
      address.Add(Linearize(store->indices()[i], {}), stride);
      stride *= shape[i];
    }
    JoinQuotients(address, {});
    std::vector<std::pair<int64_t, int64_t>> strides;  // and extents
    for (const Term& term : address.terms) {
      if (term.atom->op != Op::kVar) return false;
      const auto loop = std::ranges::find(loops, term.atom->id, [](Stmt l) { return l->var; });
      if (loop != loops.end()) strides.emplace_back(std::abs(term.coefficient), (*loop)->extent);
    }
    std::ranges::sort(strides);
    int64_t reach = 0;
    for (const auto& [step, extent] : strides) {
      if (step <= reach) return false;
      reach += step * (extent - 1);
    }
    return true;
  }

  ir::ExprPool& pool_;
  const ir::Program& program_;
};

}  // namespace

Stmt SinkRegisterLoops(ir::ExprPool& pool, const ir::Program& program, Stmt body) {
  return Sinker(pool, program).Rewrite(body);
}

}  // namespace kiln::codegen
