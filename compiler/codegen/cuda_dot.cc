// Sums of products of 8-bit integers, four at a time (dp4a).
#include <algorithm>

#include "compiler/codegen/cuda_emit.h"

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

// The loop over products whose bytes are consecutive and aligned for both factors; between it and
// the store may be loops and conditions that have nothing to do with it.
bool CudaEmitter::EmitDotLoop(Stmt loop) {
  if (loop->extent % kLanes != 0 || dot_) return false;
  Stmt store = loop->body();
  for (; store->kind != StmtKind::kStore; store = store->body()) {
    if (store->kind == StmtKind::kFor && store->loop_kind < ir::LoopKind::kBlockX) continue;
    if (store->kind != StmtKind::kIf || ir::UsesVar(store->condition(), loop->var)) return false;
  }
  const auto factors = Factors(store);
  const auto uses = [&](Expr e) { return ir::UsesVar(e, loop->var); };
  if (!factors || std::ranges::any_of(store->indices(), uses)) return false;
  Vector vector{loop->var, kLanes, {}};
  const int64_t chunks = loop->extent / kLanes;
  const int32_t chunk = ChunkVar(loop->var, kLanes, chunks);
  if (chunks > 1) vector.base = simplifier_.Var(chunk) * kLanes;
  const auto is_vector = [&](Expr load) {
    return VectorPlace(load->id, load->args(), vector).has_value();
  };
  if (!is_vector(factors->first) || !is_vector(factors->second)) return false;
  dot_ = Dot{store, factors->first, factors->second, vector};
  const auto var = static_cast<size_t>(loop->var);
  const auto body = [&] {
    env_[var] = vector.base;
    Emit(loop->body());
  };
  if (chunks == 1) {
    body();
  } else {
    var_names_[static_cast<size_t>(chunk)] = names_.Unique(var_names_[var] + "_vec");
    const auto copies = unroll_.copies.find(loop);
    const int64_t asked = copies == unroll_.copies.end() ? 0 : copies->second;
    EmitLoop(chunk, chunks, asked > 1 ? std::max<int64_t>(1, asked / kLanes) : asked, body);
  }
  env_[var] = simplifier_.Var(loop->var);
  dot_.reset();
  return true;
}

void CudaEmitter::EmitDotStore(Stmt store) {
  const auto word = [&](Expr load) {
    return fmt::format("*reinterpret_cast<const int*>(&{})",
                       Element(load->id, *VectorPlace(load->id, load->args(), dot_->vector)));
  };
  const std::string sum = Element(store->slot, PlaceOf(store->slot, store->indices()));
  Line(fmt::format("{0} = __dp4a({1}, {2}, {0});", sum, word(dot_->a), word(dot_->b)));
}

}  // namespace kiln::codegen
