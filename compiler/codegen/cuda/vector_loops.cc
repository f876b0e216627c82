#include "compiler/codegen/cuda/vector_loops.h"

#include <algorithm>

#include "compiler/codegen/cuda/types.h"
#include "compiler/ir/traverse.h"

namespace kiln::codegen {
using ir::Expr;
using ir::Op;
using ir::Stmt;
using ir::StmtKind;

bool CudaVectorLoops::Emit(Stmt loop) {
  const std::optional<Vector> vector = vectors_.ChooseLanes(loop);
  if (!vector) return false;
  const auto body = [&] { EmitBody(loop->body(), *vector); };
  if (loop->extent == vector->lanes) {
    body();
  } else {
    const int64_t chunks = loop->extent / vector->lanes;
    const int32_t chunk = scope_.ChunkVar(loop->var, vector->lanes, chunks);
    scope_.SetName(chunk, names_.Unique(scope_.name(loop->var) + "_vec"));
    blocks_.Loop(chunk, chunks, /*copies=*/chunks <= 64 ? chunks : 0, body);
  }
  scope_.ResetValue(loop->var);
  return true;
}

void CudaVectorLoops::EmitBody(Stmt body, const Vector& vector) {
  scope_.SetValue(vector.var, vector.base);
  if (body->kind == StmtKind::kStore) return EmitStores({&body, 1}, vector);
  if (body->kind == StmtKind::kSeq) return EmitStores(body->children(), vector);
  if (!vectors_.IsUniform(body->condition(), vector)) return EmitLimited(body, vector);
  blocks_.Where(body->condition(), [&] { EmitBody(body->body(), vector); });
}

// A vector where the last lane is inside, else the lanes that are.
void CudaVectorLoops::EmitLimited(Stmt body, const Vector& vector) {
  scope_.SetValue(vector.var, vector.base + arith::Constant(vector.lanes - 1));
  const Expr whole = exprs_.SimplifyCondition(body->condition());
  scope_.SetValue(vector.var, vector.base);
  if (whole->is_const_int() && !whole->is_const_int(0)) return EmitBody(body->body(), vector);
  const auto lanes = [&] {
    for (int lane = 0; lane + 1 < vector.lanes; ++lane) {
      scope_.SetValue(vector.var, vector.base + arith::Constant(lane));
      EmitLane(body);
    }
    scope_.SetValue(vector.var, vector.base);
  };
  blocks_.IfElse(whole, [&] { EmitBody(body->body(), vector); }, lanes);
}

void CudaVectorLoops::EmitLane(Stmt body) {
  if (body->kind == StmtKind::kStore) return stores_.Emit(body);
  if (body->kind == StmtKind::kSeq) {
    for (Stmt store : body->children()) stores_.Emit(store);
    return;
  }
  blocks_.Where(body->condition(), [&] { EmitLane(body->body()); });
}

namespace {

// True if a store reads what another one of them writes, as the values of an argmax do.
bool ReadEachOther(std::span<const Stmt> stores) {
  bool found = false;
  for (Stmt store : stores) {
    ir::Visit(store->value(), [&](Expr e) {
      const auto writes = [&](Stmt other) { return other != store && other->slot == e->id; };
      found = found || (e->op == Op::kLoad && std::ranges::any_of(stores, writes));
    });
  }
  return found;
}

}  // namespace

void CudaVectorLoops::EmitStores(std::span<const Stmt> stores, const Vector& vector) {
  if (ReadEachOther(stores)) return EmitInTurn(stores, vector);
  for (Stmt store : stores) {
    EmitStore(store, vector);
    exprs_.ForgetLoads();
    scope_.SetValue(vector.var, vector.base);
  }
  loaded_.clear();
}

void CudaVectorLoops::EmitInTurn(std::span<const Stmt> stores, const Vector& vector) {
  for (Stmt store : stores) {
    LoadVectors(store, vector);
    exprs_.ForgetLoads();
  }
  for (int lane = 0; lane < vector.lanes; ++lane) {
    for (Stmt store : stores) {
      SetLane(vector, lane);
      stores_.Emit(store);
    }
  }
  exprs_.ForgetLoads();
  scope_.SetValue(vector.var, vector.base);
  loaded_.clear();
}

void CudaVectorLoops::EmitStore(Stmt store, const Vector& vector) {
  const std::optional<Place> place = vectors_.PlaceOf(store->slot, store->indices(), vector);
  if (store->is_async) {
    if (place && vectors_.IsValue(store->value(), vector) &&
        stores_.EmitCopy(store, exprs_.Element(store->slot, *place), vector.lanes))
      return;
    if (store->value()->type.bytes() >= 4) return EmitLanes(store, vector);
  }
  if (place &&
      (vectors_.IsValue(store->value(), vector) || !ir::UsesVar(store->value(), vector.var))) {
    const std::string to = vectors_.Element(store->slot, *place, vector.lanes, /*is_load=*/false);
    return blocks_.Line(fmt::format("{} = {};", to, vectors_.Value(store->value(), vector)));
  }
  LoadVectors(store, vector);
  if (place) {
    ComputeLanes(store, *place, vector);
  } else {
    EmitLanes(store, vector);
  }
}

void CudaVectorLoops::LoadVectors(Stmt store, const Vector& vector) {
  std::vector<Expr> values;
  vectors_.FindValues(store->value(), vector, values);
  for (Expr e : values) {
    const auto is_it = [&](const auto& loaded) { return loaded.first == e; };
    if (std::ranges::any_of(loaded_, is_it)) continue;  // by a store before
    Expr first_load = e;                                // whose buffer the vector is named after
    while (first_load->op != Op::kLoad)
      first_load = first_load->arg(ir::HasLoad(first_load->arg(1)) ? 1 : 2);
    const std::string name = names_.Unique(exprs_.buffer_name(first_load->id) + "_vec");
    blocks_.Line(fmt::format("const {} {} = {};", VectorTypeName(e->type, vector.lanes, preamble_),
                             name, vectors_.Value(e, vector)));
    loaded_.emplace_back(e, name);
  }
}

// The result lane by lane, in a vector that is stored at once.
void CudaVectorLoops::ComputeLanes(Stmt store, const Place& to, const Vector& vector) {
  const ir::Type type = store->value()->type;
  const std::string type_name = VectorTypeName(type, vector.lanes, preamble_);
  const std::string result = names_.Unique(exprs_.buffer_name(store->slot) + "_vec");
  blocks_.Line(fmt::format("{} {};", type_name, result));
  for (int lane = 0; lane < vector.lanes; ++lane) {
    SetLane(vector, lane);
    blocks_.Line(fmt::format("{}{} = {};", result, LaneName(type, lane),
                             exprs_.PrintRaw(store->value()).text));
  }
  SetLane(vector, 0);
  blocks_.Line(fmt::format(
      "{} = {};", vectors_.Element(store->slot, to, vector.lanes, /*is_load=*/false), result));
}

void CudaVectorLoops::EmitLanes(Stmt store, const Vector& vector) {
  for (int lane = 0; lane < vector.lanes; ++lane) {
    SetLane(vector, lane);
    stores_.Emit(store);
  }
}

// Of what is loaded already, this lane is the value.
void CudaVectorLoops::SetLane(const Vector& vector, int lane) {
  scope_.SetValue(vector.var, vector.base + arith::Constant(lane));
  exprs_.ForgetLoads();
  for (const auto& [e, name] : loaded_) exprs_.HoldLoad(e, name + LaneName(e->type, lane));
}

}  // namespace kiln::codegen
