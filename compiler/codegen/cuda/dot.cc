#include "compiler/codegen/cuda/dot.h"

#include <algorithm>
#include <utility>

#include "compiler/ir/traverse.h"

namespace kiln::codegen {
namespace {
using ir::Expr;
using ir::Op;
using ir::Stmt;
using ir::StmtKind;

constexpr int kLanes = 4;

// The load of an 8-bit integer under its conversion.
Expr ByteLoad(Expr e) {
  if (e->op != Op::kCast || e->type != ir::kInt32) return nullptr;
  const Expr load = e->arg(0);
  return load->op == Op::kLoad && load->type == ir::kInt8 ? load : nullptr;
}

// The two factors of  x[i] = x[i] + int32(a)*int32(b).
std::optional<std::pair<Expr, Expr>> Factors(Stmt store) {
  const Expr value = store->value();
  if (value->type != ir::kInt32 || value->op != Op::kAdd) return std::nullopt;
  for (const int own : {0, 1}) {
    const Expr sum = value->arg(own), product = value->arg(1 - own);
    if (sum->op != Op::kLoad || sum->id != store->slot || product->op != Op::kMul) continue;
    if (!std::ranges::equal(sum->args(), store->indices())) continue;
    const Expr a = ByteLoad(product->arg(0)), b = ByteLoad(product->arg(1));
    if (a != nullptr && b != nullptr) return std::pair(a, b);
  }
  return std::nullopt;
}
}  // namespace

std::optional<Dot> MatchDot(Stmt loop, CudaScope& scope, CudaVectors& vectors) {
  if (loop->extent % kLanes != 0) return std::nullopt;
  Stmt store = loop->body();
  for (; store->kind != StmtKind::kStore; store = store->body()) {
    if (store->kind == StmtKind::kFor && store->loop_kind < ir::LoopKind::kBlockX) continue;
    if (store->kind != StmtKind::kIf || ir::UsesVar(store->condition(), loop->var))
      return std::nullopt;
  }
  const auto factors = Factors(store);
  const auto uses = [&](Expr e) { return ir::UsesVar(e, loop->var); };
  if (!factors || std::ranges::any_of(store->indices(), uses)) return std::nullopt;
  Vector vector{loop->var, kLanes, {}};
  const int64_t chunks = loop->extent / kLanes;
  const int32_t chunk = scope.ChunkVar(loop->var, kLanes, chunks);
  if (chunks > 1) vector.base = scope.simplifier().Var(chunk) * kLanes;
  const auto is_vector = [&](Expr load) {
    return vectors.PlaceOf(load->id, load->args(), vector).has_value();
  };
  if (!is_vector(factors->first) || !is_vector(factors->second)) return std::nullopt;
  return Dot{store, factors->first, factors->second, vector, chunk};
}

std::string DotText(const Dot& dot, CudaExprs& exprs, CudaVectors& vectors) {
  const auto word = [&](Expr load) {
    const std::optional<Place> place = vectors.PlaceOf(load->id, load->args(), dot.vector);
    return fmt::format("*reinterpret_cast<const int*>(&{})", exprs.Element(load->id, *place));
  };
  const Stmt store = dot.store;
  const std::string sum = exprs.Element(store->slot, exprs.PlaceOf(store->slot, store->indices()));
  return fmt::format("{0} = __dp4a({1}, {2}, {0});", sum, word(dot.a), word(dot.b));
}

}  // namespace kiln::codegen
