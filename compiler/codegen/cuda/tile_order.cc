#include "compiler/codegen/cuda/tile_order.h"

#include <algorithm>

#include "compiler/arith/linear.h"
#include "compiler/codegen/cuda/unroll.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/traverse.h"

namespace kiln::codegen {
namespace {
using ir::Expr;
using ir::LoopKind;
using ir::Op;
using ir::Stmt;
using ir::StmtKind;

// Accumulations that PlanUnrolling writes out, each of two loads and a store.
constexpr int64_t kMaxWrittenOut = kMaxUnrolledCost / 3;

bool IsMovable(Stmt stmt) {
  return stmt->kind == StmtKind::kFor && stmt->loop_kind < LoopKind::kBlockX;
}

// The store under nothing but loops and conditions; null when there is more.
Stmt OnlyStore(Stmt stmt) {
  while (stmt->kind == StmtKind::kFor || stmt->kind == StmtKind::kIf) stmt = stmt->body();
  return stmt->kind == StmtKind::kStore ? stmt : nullptr;
}

// Of a nest around one store, written out.
int64_t Stores(Stmt nest) {
  int64_t stores = 1;
  for (; nest->kind != StmtKind::kStore; nest = nest->body()) {
    if (nest->kind == StmtKind::kFor && stores <= kMaxWrittenOut) stores *= nest->extent;
  }
  return stores;
}

// Reads only the element that it stores, and nothing else that any iteration stores.
bool Accumulates(const ir::Program& program, Stmt store) {
  if (program.buffers[static_cast<size_t>(store->slot)].scope != ir::Scope::kLocal) return false;
  bool result = std::ranges::none_of(store->indices(), ir::HasLoad);
  ir::Visit(store->value(), [&](Expr node) {
    if (node->op == Op::kLoad && node->id == store->slot &&
        !std::ranges::equal(node->args(), store->indices()))
      result = false;
  });
  return result;
}

// Do different values of the loops that index the array mean different elements?
bool IsOneToOne(const ir::Program& program, Stmt store, const std::vector<Stmt>& loops) {
  const arith::Linear address =
      arith::Flatten(store->indices(), program.buffers[static_cast<size_t>(store->slot)].shape);
  std::vector<std::pair<int64_t, int64_t>> strides;  // and extents
  for (const arith::Term& term : address.terms) {
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

class Sinker {
 public:
  explicit Sinker(const ir::Program& program) : pool_(*program.pool), program_(program) {}

  Stmt Rewrite(Stmt stmt) {
    if (IsMovable(stmt) && OnlyStore(stmt) != nullptr) return RewriteNest(stmt);
    return ir::RewriteChildren(pool_, stmt, [&](Stmt child) { return Rewrite(child); });
  }

 private:
  Stmt RewriteNest(Stmt stmt) {
    const std::optional<RegisterTile> tile = MatchRegisterTile(program_, stmt);
    if (!tile) return stmt;
    std::vector<Stmt> order = tile->outside;
    order.insert(order.end(), tile->inside.begin(), tile->inside.end());
    // The lanes of a vector stay innermost.
    if (std::ranges::any_of(order, [&](Stmt loop) {
          return loop->loop_kind == LoopKind::kVectorized && loop != order.back();
        }))
      order = tile->loops;
    // Behind a condition is a nest of its own.
    Stmt inner = Stores(stmt) > kMaxWrittenOut ? Rewrite(tile->body) : tile->body;
    if (order == tile->loops && inner == tile->body) return stmt;
    for (size_t i = order.size(); i-- > 0;) inner = ir::WithBody(pool_, order[i], inner);
    return inner;
  }

  ir::ExprPool& pool_;
  const ir::Program& program_;
};

}  // namespace

std::optional<RegisterTile> MatchRegisterTile(const ir::Program& program, Stmt stmt) {
  if (!IsMovable(stmt)) return std::nullopt;
  RegisterTile tile;
  tile.store = OnlyStore(stmt);
  if (tile.store == nullptr) return std::nullopt;
  for (tile.body = stmt; IsMovable(tile.body); tile.body = tile.body->body())
    tile.loops.push_back(tile.body);
  if (!Accumulates(program, tile.store) || !IsOneToOne(program, tile.store, tile.loops))
    return std::nullopt;
  for (Stmt loop : tile.loops) {
    const bool indexes = std::ranges::any_of(tile.store->indices(),
                                             [&](Expr e) { return ir::UsesVar(e, loop->var); });
    (indexes ? tile.inside : tile.outside).push_back(loop);
  }
  return tile;
}

void SinkRegisterLoops(ir::Program& program) {
  Sinker sinker(program);
  for (ir::Kernel& kernel : program.kernels) kernel.body = sinker.Rewrite(kernel.body);
}

}  // namespace kiln::codegen
