#include <algorithm>
#include <numeric>

#include "compiler/codegen/cuda_emit.h"

namespace kiln::codegen {
namespace {
using arith::Linear;
using ir::Expr;
using ir::Op;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;

constexpr int kMaxVectorBytes = 16;

bool HasBuiltinVector(Type type) {
  return type == ir::kFloat32 || type == ir::kFloat64 || type == ir::kInt32 || type == ir::kInt64;
}

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
}  // namespace

std::string CudaEmitter::VectorTypeName(Type type, int lanes) {
  if (HasBuiltinVector(type)) {
    const std::string base = type == ir::kInt64 ? "longlong" : CudaTypeName(type);
    return fmt::format("{}{}", base, lanes);
  }
  const std::string_view base = type == ir::kFloat16    ? "half"
                                : type == ir::kBFloat16 ? "bfloat"
                                : type.is_bool()        ? "bool"
                                                        : "char";
  const std::string name = fmt::format("{}_x{}", base, lanes);
  preamble_.vector_types[name] = fmt::format("struct __align__({}) {} {{\n  {} lane[{}];\n}};\n",
                                             lanes * type.bytes(), name, CudaTypeName(type), lanes);
  return name;
}

std::string CudaEmitter::LaneName(Type type, int lane) {
  if (HasBuiltinVector(type)) return std::string(".") + "xyzw"[lane];
  return fmt::format(".lane[{}]", lane);
}

int64_t CudaEmitter::MultipleOf(Expr e) {
  if (e->is_const_int()) return std::abs(e->int_value);
  switch (e->op) {
    case Op::kMul:
      return std::max<int64_t>(1, MultipleOf(e->arg(0)) * MultipleOf(e->arg(1)) & 0xffff);
    case Op::kFloorMod:
      return std::gcd(MultipleOf(simplifier_.ToLinear(e->arg(0))), MultipleOf(e->arg(1)));
    default:
      return 1;
  }
}

// A number that divides every value of e; 0 when e is 0.
int64_t CudaEmitter::MultipleOf(const Linear& e) {
  int64_t result = std::abs(e.constant);
  for (const arith::Term& term : e.terms)
    result = std::gcd(result, std::abs(term.coefficient) % (1 << 20) * MultipleOf(term.atom));
  return result;
}

void CudaEmitter::SetLane(const Vector& vector, int lane) {
  env_[static_cast<size_t>(vector.var)] = vector.base + arith::Constant(lane);
  lanes_.clear();
  for (const auto& [e, name] : vectors_) lanes_[e] = name + LaneName(e->type, lane);
}

// The place of lane 0, where the lanes are consecutive and the first one is aligned.
std::optional<CudaEmitter::Place> CudaEmitter::VectorPlace(int32_t slot,
                                                           std::span<const Expr> indices,
                                                           const Vector& vector) {
  const ir::Buffer& accessed = buffer(slot);
  if (accessed.scope == ir::Scope::kLocal || in_registers_.contains(slot)) return std::nullopt;
  if (vector.lanes * accessed.type.bytes() > kMaxVectorBytes) return std::nullopt;
  if (HasBuiltinVector(accessed.type) && vector.lanes > 4) return std::nullopt;
  Linear& value = env_[static_cast<size_t>(vector.var)];
  const Linear saved = value;
  value = vector.base;
  const Place first = PlaceOf(slot, indices);
  bool fits = MultipleOf(first.offset) % vector.lanes == 0;
  for (int lane = 1; fits && lane < vector.lanes; ++lane) {
    value = vector.base + arith::Constant(lane);
    const Place place = PlaceOf(slot, indices);
    fits = place.offset - first.offset == arith::Constant(lane) && place.block == first.block;
  }
  value = saved;
  if (!fits) return std::nullopt;
  return first;
}

// Has the condition one value for all lanes?
bool CudaEmitter::IsUniform(Expr condition, const Vector& vector) {
  if (!ir::UsesVar(condition, vector.var)) return true;
  Linear& value = env_[static_cast<size_t>(vector.var)];
  const Linear saved = value;
  value = vector.base;
  const Expr first = simplifier_.Simplify(condition, &env_);
  bool is_uniform = true;
  for (int lane = 1; is_uniform && lane < vector.lanes; ++lane) {
    value = vector.base + arith::Constant(lane);
    is_uniform = simplifier_.Simplify(condition, &env_) == first;
  }
  value = saved;
  return is_uniform;
}

// Does the condition hold for all lanes where it does for the last?
bool CudaEmitter::IsLimit(Expr condition, const Vector& vector) {
  if (condition->op != Op::kLt || ir::UsesVar(condition->arg(1), vector.var)) return false;
  Linear value = arith::Linearize(condition->arg(0));
  arith::JoinQuotients(value);
  return std::ranges::all_of(value.terms, [&](const arith::Term& term) {
    if (term.atom->op == Op::kVar && term.atom->id == vector.var) return term.coefficient > 0;
    return !ir::UsesVar(term.atom, vector.var);
  });
}

bool CudaEmitter::IsVectorValue(Expr e, const Vector& vector) {
  if (e->op == Op::kLoad) return VectorPlace(e->id, e->args(), vector).has_value();
  if (e->op != Op::kIf && e->op != Op::kSelect) return false;
  if (!IsUniform(e->arg(0), vector)) return false;
  bool has_load = false;
  for (int i : {1, 2}) {
    if (!ir::UsesVar(e->arg(i), vector.var)) continue;
    if (!IsVectorValue(e->arg(i), vector)) return false;
    has_load = true;
  }
  return has_load;
}

std::string CudaEmitter::VectorElement(int32_t slot, const Place& place, int lanes, bool is_load) {
  return fmt::format("*reinterpret_cast<{}{}*>(&{})", is_load ? "const " : "",
                     VectorTypeName(buffer(slot).type, lanes), Element(slot, place));
}

std::string CudaEmitter::VectorValue(Expr e, const Vector& vector) {
  if (!ir::UsesVar(e, vector.var)) {
    const std::string one = PrintRaw(e).text, type = VectorTypeName(e->type, vector.lanes);
    std::string all = one;
    for (int lane = 1; lane < vector.lanes; ++lane) all += ", " + one;
    return HasBuiltinVector(e->type) ? fmt::format("make_{}({})", type, all)
                                     : fmt::format("{}{{{{{}}}}}", type, all);
  }
  if (e->op == Op::kLoad)
    return VectorElement(e->id, *VectorPlace(e->id, e->args(), vector), vector.lanes, true);
  const Expr condition = SimplifyCondition(e->arg(0));
  if (condition->is_const_int())
    return VectorValue(e->arg(condition->int_value != 0 ? 1 : 2), vector);
  const auto side = [&](int i) {
    std::optional<arith::FactScope> facts;
    if (i == 1 && e->op == Op::kIf) facts.emplace(simplifier_, condition);
    const std::string value = VectorValue(e->arg(i), vector);
    const bool is_choice = ir::UsesVar(e->arg(i), vector.var) && e->arg(i)->op != Op::kLoad;
    return is_choice ? "(" + value + ")" : value;
  };
  const std::string yes = side(1);
  return fmt::format("{} ? {} : {}", Wrap(PrintSimplified(condition), kOr), yes, side(2));
}

void CudaEmitter::FindVectorValues(Expr e, const Vector& vector, std::vector<Expr>& found,
                                   bool loads_only) {
  if (!ir::UsesVar(e, vector.var) || std::ranges::find(found, e) != found.end()) return;
  if ((e->op == Op::kLoad || !loads_only) && IsVectorValue(e, vector)) {
    found.push_back(e);
    return;
  }
  // Conditions and index arithmetic are simplified, which keeps loads but no choices.
  loads_only |= e->type.is_bool() || e->type == ir::kIndex || e->op == Op::kLoad;
  // Only what is evaluated in any case may be read ahead.
  const bool is_lazy = e->op == Op::kIf || e->op == Op::kAnd || e->op == Op::kOr;
  const int count = is_lazy ? 1 : e->num_args;
  for (int i = 0; i < count; ++i) FindVectorValues(e->arg(i), vector, found, loads_only);
}

bool CudaEmitter::CanVectorize(Stmt body, const Vector& vector, bool must_store) {
  if (body->kind == StmtKind::kIf) {
    const Expr condition = body->condition();
    return !ir::HasLoad(condition) &&
           (IsUniform(condition, vector) || IsLimit(condition, vector)) &&
           CanVectorize(body->body(), vector, must_store);
  }
  if (body->kind != StmtKind::kStore || !ReadsOnlyOwnLane(body)) return false;
  if (must_store) return VectorPlace(body->slot, body->indices(), vector).has_value();
  std::vector<Expr> found;
  FindVectorValues(body->value(), vector, found);
  // What all lanes store to one place is what the last one stores.
  return !found.empty();
}

int32_t CudaEmitter::ChunkVar(int32_t var, int lanes, int64_t extent) {
  const auto [at, is_new] = chunk_vars_[var].try_emplace(lanes, -1);
  if (is_new) {
    at->second = simplifier_.AddVar(extent);
    env_.push_back(simplifier_.Var(at->second));
    var_names_.emplace_back();
  }
  return at->second;
}

std::optional<CudaEmitter::Vector> CudaEmitter::ChooseLanes(Stmt loop) {
  for (const bool must_store : {true, false}) {
    for (int lanes : {16, 8, 4, 2}) {
      if (loop->extent % lanes != 0) continue;
      Vector vector{loop->var, lanes, {}};
      if (loop->extent > lanes) {
        const int32_t chunk = ChunkVar(loop->var, lanes, loop->extent / lanes);
        vector.base = simplifier_.Var(chunk) * lanes;
      }
      if (CanVectorize(loop->body(), vector, must_store)) return vector;
    }
  }
  return std::nullopt;
}

bool CudaEmitter::EmitVectorized(Stmt loop) {
  const std::optional<Vector> vector = ChooseLanes(loop);
  if (!vector) return false;
  const auto var = static_cast<size_t>(loop->var);
  const auto body = [&] { EmitVectorBody(loop->body(), *vector); };
  if (loop->extent == vector->lanes) {
    body();
  } else {
    const int64_t chunks = loop->extent / vector->lanes;
    const int32_t chunk = ChunkVar(loop->var, vector->lanes, chunks);
    var_names_[static_cast<size_t>(chunk)] = names_.Unique(var_names_[var] + "_vec");
    EmitLoop(chunk, chunks, /*copies=*/chunks <= 64 ? chunks : 0, body);
  }
  env_[var] = simplifier_.Var(loop->var);
  return true;
}

void CudaEmitter::EmitVectorBody(Stmt body, const Vector& vector) {
  env_[static_cast<size_t>(vector.var)] = vector.base;
  if (body->kind == StmtKind::kStore) return EmitVectorStore(body, vector);
  if (!IsUniform(body->condition(), vector)) return EmitLimited(body, vector);
  const Expr condition = SimplifyCondition(body->condition());
  if (condition->is_const_int(0)) return;
  if (condition->is_const_int()) return EmitVectorBody(body->body(), vector);
  Line(fmt::format("if ({}) {{", PrintSimplified(condition).text));
  ++indent_;
  {
    const arith::FactScope facts(simplifier_, condition);
    EmitVectorBody(body->body(), vector);
  }
  --indent_;
  Line("}");
}

// A vector where the last lane is inside, else the lanes that are.
void CudaEmitter::EmitLimited(Stmt body, const Vector& vector) {
  Linear& value = env_[static_cast<size_t>(vector.var)];
  value = vector.base + arith::Constant(vector.lanes - 1);
  const Expr whole = SimplifyCondition(body->condition());
  value = vector.base;
  if (whole->is_const_int() && !whole->is_const_int(0)) return EmitVectorBody(body->body(), vector);
  Line(fmt::format("if ({}) {{", PrintSimplified(whole).text));
  ++indent_;
  {
    const arith::FactScope facts(simplifier_, whole);
    EmitVectorBody(body->body(), vector);
  }
  --indent_;
  Line("} else {");
  ++indent_;
  for (int lane = 0; lane + 1 < vector.lanes; ++lane) {
    env_[static_cast<size_t>(vector.var)] = vector.base + arith::Constant(lane);
    EmitIf(body);
  }
  env_[static_cast<size_t>(vector.var)] = vector.base;
  --indent_;
  Line("}");
}

void CudaEmitter::EmitVectorStore(Stmt store, const Vector& vector) {
  const std::optional<Place> place = VectorPlace(store->slot, store->indices(), vector);
  if (store->is_async) {
    if (place && IsVectorValue(store->value(), vector) &&
        EmitCopy(store, Element(store->slot, *place), vector.lanes))
      return;
    if (store->value()->type.bytes() >= 4) {
      for (int lane = 0; lane < vector.lanes; ++lane) {
        SetLane(vector, lane);
        EmitStore(store);
      }
      return SetLane(vector, 0);
    }
  }
  if (place &&
      (IsVectorValue(store->value(), vector) || !ir::UsesVar(store->value(), vector.var))) {
    const std::string to = VectorElement(store->slot, *place, vector.lanes, false);
    return Line(fmt::format("{} = {};", to, VectorValue(store->value(), vector)));
  }
  std::vector<Expr> loads;
  FindVectorValues(store->value(), vector, loads);
  for (Expr e : loads) {
    Expr named = e;  // after the first buffer in it
    while (named->op != Op::kLoad) named = named->arg(ir::HasLoad(named->arg(1)) ? 1 : 2);
    const std::string name =
        names_.Unique(fmt::format("{}_vec", buffer_names_[static_cast<size_t>(named->id)]));
    Line(fmt::format("const {} {} = {};", VectorTypeName(e->type, vector.lanes), name,
                     VectorValue(e, vector)));
    vectors_.emplace_back(e, name);
  }
  if (place) {
    const Type type = store->value()->type;
    const std::string type_name = VectorTypeName(type, vector.lanes),
                      result =
                          names_.Unique(buffer_names_[static_cast<size_t>(store->slot)] + "_vec");
    Line(fmt::format("{} {};", type_name, result));
    for (int lane = 0; lane < vector.lanes; ++lane) {
      SetLane(vector, lane);
      Line(fmt::format("{}{} = {};", result, LaneName(type, lane), PrintRaw(store->value()).text));
    }
    SetLane(vector, 0);
    Line(fmt::format("{} = {};", VectorElement(store->slot, *place, vector.lanes, false), result));
  } else {
    for (int lane = 0; lane < vector.lanes; ++lane) {
      SetLane(vector, lane);
      EmitStore(store);
    }
  }
  vectors_.clear();
  lanes_.clear();
  env_[static_cast<size_t>(vector.var)] = vector.base;
}

}  // namespace kiln::codegen
