#include "compiler/codegen/cuda/vectors.h"

#include <algorithm>

#include "compiler/arith/multiple.h"
#include "compiler/codegen/cuda/types.h"
#include "compiler/ir/traverse.h"

namespace kiln::codegen {
namespace {
using arith::Linear;
using ir::Expr;
using ir::Op;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;

constexpr int kMaxVectorBytes = 16;

// A vector body runs all loads before all stores: the same as lane after lane if what is stored is
// read only in its own lane.
bool ReadsOnlyOwnLane(Stmt store) {
  bool result = true;
  for (Expr e : store->exprs()) {
    ir::Visit(e, [&](Expr node) {
      if (node->op != Op::kLoad || node->id != store->slot) return;
      if (!std::ranges::equal(node->args(), store->indices())) result = false;
    });
  }
  return result;
}

// Stores to several buffers of which none is read: one after the other, as vectors, they are the same
// as lane after lane.
bool StoresApart(Stmt seq) {
  const std::span<const Stmt> stores = seq->children();
  const auto is_stored = [&](int32_t slot) {
    return std::ranges::count(stores, slot, &ir::StmtNode::slot);
  };
  return std::ranges::all_of(stores, [&](Stmt store) {
    if (store->kind != StmtKind::kStore || is_stored(store->slot) != 1) return false;
    bool reads_stored = false;
    for (Expr e : store->exprs()) {
      ir::Visit(
          e, [&](Expr node) { reads_stored |= node->op == Op::kLoad && is_stored(node->id) != 0; });
    }
    return !reads_stored;
  });
}
}  // namespace

bool IsLimit(Expr condition, const Vector& vector) {
  if (condition->op != Op::kLt || ir::UsesVar(condition->arg(1), vector.var)) return false;
  Linear value = arith::Linearize(condition->arg(0));
  arith::JoinQuotients(value);
  return std::ranges::all_of(value.terms, [&](const arith::Term& term) {
    if (term.atom->op == Op::kVar && term.atom->id == vector.var) return term.coefficient > 0;
    return !ir::UsesVar(term.atom, vector.var);
  });
}

std::optional<Vector> CudaVectors::ChooseLanes(Stmt loop) {
  for (const bool must_store : {true, false}) {
    for (int lanes : {16, 8, 4, 2}) {
      if (loop->extent % lanes != 0) continue;
      Vector vector{loop->var, lanes, {}};
      if (loop->extent > lanes) {
        const int32_t chunk = scope_.ChunkVar(loop->var, lanes, loop->extent / lanes);
        vector.base = scope_.simplifier().Var(chunk) * lanes;
      }
      if (CanVectorize(loop->body(), vector, must_store)) return vector;
    }
  }
  return std::nullopt;
}

std::optional<Place> CudaVectors::PlaceOf(int32_t slot, std::span<const Expr> indices,
                                          const Vector& vector) {
  const ir::Buffer& accessed = exprs_.buffer(slot);
  if (accessed.scope == ir::Scope::kLocal || exprs_.HeldBufferOrNull(slot) != nullptr)
    return std::nullopt;
  if (vector.lanes * accessed.type.bytes() > kMaxVectorBytes) return std::nullopt;
  if (HasBuiltinVector(accessed.type) && vector.lanes > 4) return std::nullopt;
  const Linear saved = scope_.value(vector.var);
  scope_.SetValue(vector.var, vector.base);
  const Place first = exprs_.PlaceOf(slot, indices);
  bool fits = MultipleOf(first.offset) % vector.lanes == 0;
  for (int lane = 1; fits && lane < vector.lanes; ++lane) {
    scope_.SetValue(vector.var, vector.base + arith::Constant(lane));
    const Place place = exprs_.PlaceOf(slot, indices);
    fits = place.offset - first.offset == arith::Constant(lane) && place.block == first.block;
  }
  scope_.SetValue(vector.var, saved);
  if (!fits) return std::nullopt;
  return first;
}

bool CudaVectors::IsValue(Expr e, const Vector& vector) {
  if (e->op == Op::kLoad) return PlaceOf(e->id, e->args(), vector).has_value();
  if (e->op != Op::kIf && e->op != Op::kSelect) return false;
  if (!IsUniform(e->arg(0), vector)) return false;
  bool has_load = false;
  for (int i : {1, 2}) {
    if (!ir::UsesVar(e->arg(i), vector.var)) continue;
    if (!IsValue(e->arg(i), vector)) return false;
    has_load = true;
  }
  return has_load;
}

bool CudaVectors::IsUniform(Expr condition, const Vector& vector) {
  if (!ir::UsesVar(condition, vector.var)) return true;
  const Linear saved = scope_.value(vector.var);
  scope_.SetValue(vector.var, vector.base);
  const Expr first = scope_.simplifier().Simplify(condition, &scope_.values());
  bool is_uniform = true;
  for (int lane = 1; is_uniform && lane < vector.lanes; ++lane) {
    scope_.SetValue(vector.var, vector.base + arith::Constant(lane));
    is_uniform = scope_.simplifier().Simplify(condition, &scope_.values()) == first;
  }
  scope_.SetValue(vector.var, saved);
  return is_uniform;
}

void CudaVectors::FindValues(Expr e, const Vector& vector, std::vector<Expr>& found,
                             bool loads_only) {
  if (!ir::UsesVar(e, vector.var) || std::ranges::find(found, e) != found.end()) return;
  if ((e->op == Op::kLoad || !loads_only) && IsValue(e, vector)) {
    found.push_back(e);
    return;
  }
  // Conditions and index arithmetic are simplified, which keeps loads but no choices.
  loads_only |= e->type.is_bool() || e->type == ir::kIndex || e->op == Op::kLoad;
  // Only what is evaluated in any case may be read ahead.
  const bool is_lazy = e->op == Op::kIf || e->op == Op::kAnd || e->op == Op::kOr;
  const int count = is_lazy ? 1 : e->num_args;
  for (int i = 0; i < count; ++i) FindValues(e->arg(i), vector, found, loads_only);
}

// The values of a reduction, one store for each. Lanes are combined one after the other.
bool CudaVectors::CombinesInRegisters(Stmt seq) const {
  const std::span<const Stmt> stores = seq->children();
  return std::ranges::all_of(stores, [&](Stmt store) {
    if (store->kind != StmtKind::kStore ||
        std::ranges::count(stores, store->slot, &ir::StmtNode::slot) != 1 ||
        exprs_.buffer(store->slot).scope != ir::Scope::kLocal)
      return false;
    bool reads_own_places = true;
    for (Expr e : store->exprs()) {
      ir::Visit(e, [&](Expr node) {
        const bool is_stored =
            node->op == Op::kLoad && std::ranges::count(stores, node->id, &ir::StmtNode::slot) != 0;
        reads_own_places &= !is_stored || std::ranges::equal(node->args(), store->indices());
      });
    }
    return reads_own_places;
  });
}

bool CudaVectors::CanVectorize(Stmt body, const Vector& vector, bool must_store) {
  if (body->kind == StmtKind::kIf) {
    const Expr condition = body->condition();
    return !ir::HasLoad(condition) &&
           (IsUniform(condition, vector) || IsLimit(condition, vector)) &&
           CanVectorize(body->body(), vector, must_store);
  }
  if (body->kind == StmtKind::kSeq) {
    const auto can = [&](Stmt store) { return CanVectorize(store, vector, must_store); };
    if (StoresApart(body)) return std::ranges::all_of(body->children(), can);
    return !must_store && CombinesInRegisters(body) && std::ranges::any_of(body->children(), can);
  }
  if (body->kind != StmtKind::kStore || !ReadsOnlyOwnLane(body)) return false;
  if (must_store) return PlaceOf(body->slot, body->indices(), vector).has_value();
  std::vector<Expr> found;
  FindValues(body->value(), vector, found);
  // What all lanes store to one place is what the last one stores.
  return !found.empty();
}

std::string CudaVectors::Element(int32_t slot, const Place& place, int lanes, bool is_load) {
  return fmt::format("*reinterpret_cast<{}{}*>(&{})", is_load ? "const " : "",
                     VectorTypeName(exprs_.buffer(slot).type, lanes, preamble_),
                     exprs_.Element(slot, place));
}

std::string CudaVectors::Value(Expr e, const Vector& vector) {
  if (!ir::UsesVar(e, vector.var)) {
    const std::string one = exprs_.PrintRaw(e).text,
                      type = VectorTypeName(e->type, vector.lanes, preamble_);
    std::string all = one;
    for (int lane = 1; lane < vector.lanes; ++lane) all += ", " + one;
    return HasBuiltinVector(e->type) ? fmt::format("make_{}({})", type, all)
                                     : fmt::format("{}{{{{{}}}}}", type, all);
  }
  if (e->op == Op::kLoad)
    return Element(e->id, *PlaceOf(e->id, e->args(), vector), vector.lanes, true);
  const Expr condition = exprs_.SimplifyCondition(e->arg(0));
  if (condition->is_const_int()) return Value(e->arg(condition->int_value != 0 ? 1 : 2), vector);
  const auto side = [&](int i) {
    std::optional<arith::FactScope> facts;
    if (i == 1 && e->op == Op::kIf) facts.emplace(scope_.simplifier(), condition);
    const std::string value = Value(e->arg(i), vector);
    const bool is_choice = ir::UsesVar(e->arg(i), vector.var) && e->arg(i)->op != Op::kLoad;
    return is_choice ? "(" + value + ")" : value;
  };
  const std::string yes = side(1);
  return fmt::format("{} ? {} : {}", Wrap(exprs_.PrintSimplified(condition), Precedence::kOr), yes,
                     side(2));
}

int64_t CudaVectors::MultipleOf(const Linear& e) {
  return arith::MultipleOf(scope_.simplifier(), e);
}

}  // namespace kiln::codegen
