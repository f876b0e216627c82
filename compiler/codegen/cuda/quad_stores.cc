#include "compiler/codegen/cuda/quad_stores.h"

#include <algorithm>

#include "compiler/codegen/cuda/float8.h"
#include "compiler/codegen/cuda/types.h"
#include "compiler/ir/scalar.h"
#include "compiler/ir/traverse.h"

namespace kiln::codegen {
namespace {
using arith::Linear;
using ir::Expr;
using ir::Op;
using ir::Stmt;
using ir::StmtKind;

constexpr int64_t kQuad = 4, kPair = 2, kColumns = kQuad * kPair, kVectorBytes = 16;

// The pairs of a loop, which may stand in a condition.
Stmt PairsOf(Stmt loop) {
  if (loop->extent == 0) return nullptr;
  const Stmt pair = loop->body()->kind == StmtKind::kIf ? loop->body()->body() : loop->body();
  const bool is_pair = pair->kind == StmtKind::kFor &&
                       pair->loop_kind == ir::LoopKind::kVectorized && pair->extent == kPair;
  return is_pair && pair->body()->kind == StmtKind::kStore ? pair : nullptr;
}

// "": none of the types that are stored so.
std::string_view PackedName(ir::Type type) {
  if (type == ir::kFloat16) return "f16";
  if (type == ir::kBFloat16) return "bf16";
  return ir::Float8FormatOf(type) != nullptr ? Float8Name(type) : "";
}

// Values are computed in float, and rounded where they are packed.
bool IsRounded(Expr value) { return value->op == Op::kCast && value->arg(0)->type == ir::kFloat32; }

}  // namespace

// Is it the same for four threads that follow each other?
bool CudaQuadStores::IsSameInQuad(Expr e, int32_t thread) const {
  if (!ir::UsesVar(e, thread)) return true;
  if (e->op == Op::kFloorDiv && e->arg(0)->op == Op::kVar && e->arg(1)->is_const_int())
    return e->arg(1)->int_value % kQuad == 0;
  return e->op != Op::kVar && e->op != Op::kLoad &&
         std::ranges::all_of(e->args(), [&](Expr arg) { return IsSameInQuad(arg, thread); });
}

// What is read beside registers is a row, as a bias is, which is read again and again; or lies as the
// results do.
bool CudaQuadStores::FindLoads(Stmt loop, Stmt store, int32_t thread) {
  const int64_t columns = exprs_.buffer(store->slot).shape.back();
  loads_.clear();
  bool fits = true;
  ir::Visit(store->value(), [&](Expr e) {
    if (e->op != Op::kLoad) return;
    const ir::Buffer& buffer = exprs_.buffer(e->id);
    const auto is_same = [&](const Access& other) { return other.load == e; };
    if (buffer.scope == ir::Scope::kLocal || buffer.num_elements() <= columns ||
        std::ranges::any_of(loads_, is_same))
      return;
    loads_.push_back({e->id, e->args(), e});
    fits = fits && buffer.scope <= ir::Scope::kWorkspace && IsOfQuads(loop, loads_.back(), thread);
  });
  return fits;
}

Linear CudaQuadStores::PlaceAt(Stmt loop, const Access& access, int64_t v, int64_t lane) {
  scope_.SetValue(loop->var, scope_.simplifier().Var(group_) * tiles_ + arith::Constant(v));
  scope_.SetValue(pairs_->var, arith::Constant(lane));
  Linear place = exprs_.PlaceOf(access.slot, access.indices).offset;
  scope_.ResetValue(loop->var);
  scope_.ResetValue(pairs_->var);
  return place;
}

bool CudaQuadStores::IsOfQuads(Stmt loop, const Access& access, int32_t thread) {
  const ir::Type type = exprs_.buffer(access.slot).type;
  if (PackedName(type).empty() || type.bytes() * tiles_ != kColumns) return false;
  const Linear first = PlaceAt(loop, access, 0, 0);
  if (PlaceAt(loop, access, 0, 1) - first != arith::Constant(1)) return false;
  for (int64_t v = 1; v < tiles_; ++v) {
    if (PlaceAt(loop, access, v, 0) - first != arith::Constant(v * kColumns)) return false;
  }
  arith::Simplifier& simplifier = scope_.simplifier();
  const Linear rest = first - simplifier.FloorMod(simplifier.Var(thread), kQuad) * kPair;
  return vectors_.MultipleOf(rest) % (kVectorBytes / type.bytes()) == 0 &&
         std::ranges::all_of(
             rest.terms, [&](const arith::Term& term) { return IsSameInQuad(term.atom, thread); });
}

bool CudaQuadStores::Matches(Stmt loop, Stmt store, int32_t thread) {
  const ir::Buffer& out = exprs_.buffer(store->slot);
  return out.scope <= ir::Scope::kWorkspace && !store->is_async && !out.shape.empty() &&
         (IsRounded(store->value()) || out.type.bytes() > 1) &&
         IsOfQuads(loop, {store->slot, store->indices()}, thread) && FindLoads(loop, store, thread);
}

Expr CudaQuadStores::GuardAt(Stmt loop, Expr where, int64_t v) {
  scope_.SetValue(loop->var, scope_.simplifier().Var(group_) * tiles_ + arith::Constant(v));
  Expr guard = where == nullptr ? nullptr : exprs_.SimplifyCondition(where);
  if (loop->body()->kind == StmtKind::kIf) {
    const Expr inner = exprs_.SimplifyCondition(loop->body()->condition());
    guard = guard == nullptr ? inner : scope_.pool().And(guard, inner);
  }
  scope_.ResetValue(loop->var);
  return guard;
}

// False: there is one that is not the same for all of a group.
bool CudaQuadStores::FindGuard(Stmt loop, Expr where, int32_t thread) {
  guard_ = GuardAt(loop, where, 0);
  if (guard_ == nullptr) return true;
  const std::string text = exprs_.PrintSimplified(guard_).text;
  for (int64_t v = 1; v < tiles_; ++v) {
    if (exprs_.PrintSimplified(GuardAt(loop, where, v)).text != text) return false;
  }
  if (!guard_->is_const_int()) return IsSameInQuad(guard_, thread);
  const bool is_always = guard_->int_value != 0;
  guard_ = nullptr;
  return is_always;
}

template <typename Body>
void CudaQuadStores::Guarded(Body&& body) {
  if (guard_ == nullptr) return body();
  blocks_.If(guard_, body);
}

// The 16 bytes of the thread.
std::string CudaQuadStores::Vector(Stmt loop, const Access& access, int32_t thread) {
  arith::Simplifier& simplifier = scope_.simplifier();
  const int64_t elements = kVectorBytes / exprs_.buffer(access.slot).type.bytes();
  const Linear place = PlaceAt(loop, access, 0, 0) +
                       simplifier.FloorMod(simplifier.Var(thread), kQuad) * (elements - kPair);
  return exprs_.Element(access.slot, {.offset = place, .block = {}});
}

std::string CudaQuadStores::PairAt(Stmt loop, Stmt store, int64_t v,
                                   const std::vector<std::string>& loaded) {
  const Expr value = store->value();
  std::string parts;
  for (const int64_t lane : {0, 1}) {
    scope_.SetValue(loop->var, scope_.simplifier().Var(group_) * tiles_ + arith::Constant(v));
    scope_.SetValue(pairs_->var, arith::Constant(lane));
    for (size_t i = 0; i < loads_.size(); ++i) {
      exprs_.HoldLoad(loads_[i].load,
                      fmt::format("reinterpret_cast<const {}*>({})[{}]",
                                  CudaTypeName(loads_[i].load->type), loaded[i], v * kPair + lane));
    }
    parts += (lane == 0 ? "" : ", ") + exprs_.Print(IsRounded(value) ? value->arg(0) : value).text;
  }
  if (!loads_.empty()) exprs_.ForgetLoads();
  scope_.ResetValue(loop->var);
  scope_.ResetValue(pairs_->var);
  return fmt::format("pack_{}({})", PackedName(exprs_.buffer(store->slot).type), parts);
}

// The registers of each load.
std::vector<std::string> CudaQuadStores::EmitLoads(Stmt loop, int32_t thread) {
  std::vector<std::string> loaded;
  for (const Access& load : loads_) {
    const std::string vector = names_.Unique("loaded"),
                      &quad = loaded.emplace_back(names_.Unique("quad"));
    blocks_.Line(fmt::format("unsigned {}[4] = {{}};", quad));
    Guarded([&] {
      blocks_.Line(fmt::format("const uint4 {} = *reinterpret_cast<const uint4*>(&{});", vector,
                               Vector(loop, load, thread)));
      blocks_.Line(fmt::format("{0}[0] = {1}.x, {0}[1] = {1}.y, {0}[2] = {1}.z, {0}[3] = {1}.w;",
                               quad, vector));
    });
    if (tiles_ > kQuad) blocks_.Line(fmt::format("unzip_pairs({});", quad));
    blocks_.Line(fmt::format("transpose_quad({});", quad));
  }
  return loaded;
}

bool CudaQuadStores::Emit(Stmt loop, int32_t thread, Expr where) {
  pairs_ = PairsOf(loop);
  if (pairs_ == nullptr) return false;
  const Stmt store = pairs_->body();
  const ir::Type type = exprs_.buffer(store->slot).type;
  tiles_ = kColumns / type.bytes();
  if (tiles_ < kQuad || loop->extent % tiles_ != 0) return false;
  const int64_t groups = loop->extent / tiles_;
  group_ = scope_.OwnVar("quad of stores", groups);
  if (!Matches(loop, store, thread) || !FindGuard(loop, where, thread)) return false;
  preamble_.quads = true;
  preamble_.packed_types.insert(PackedName(type));
  scope_.SetName(group_, names_.Unique(scope_.name(loop->var) + "_quad"));
  blocks_.Loop(group_, groups, groups, [&] {
    const std::vector<std::string> loaded = EmitLoads(loop, thread);
    const std::string quad = names_.Unique("quad");
    blocks_.Line(fmt::format("unsigned {}[4]{};", quad, guard_ == nullptr ? "" : " = {}"));
    Guarded([&] {
      for (int64_t i = 0; i < kQuad; ++i) {
        const std::string registers =
            tiles_ == kQuad ? PairAt(loop, store, i, loaded)
                            : fmt::format("{} | {} << 16", PairAt(loop, store, 2 * i, loaded),
                                          PairAt(loop, store, 2 * i + 1, loaded));
        blocks_.Line(fmt::format("{}[{}] = {};", quad, i, registers));
      }
    });
    blocks_.Line(fmt::format("transpose_quad({});", quad));
    if (tiles_ > kQuad) blocks_.Line(fmt::format("zip_pairs({});", quad));
    Guarded([&] {
      blocks_.Line(fmt::format(
          "*reinterpret_cast<uint4*>(&{0}) = make_uint4({1}[0], {1}[1], {1}[2], {1}[3]);",
          Vector(loop, {store->slot, store->indices()}, thread), quad));
    });
  });
  return true;
}

std::string_view QuadDefinition() {
  return R"cuda(// Of four threads that follow each other, thread i gets what each of them has in register i.
__device__ __forceinline__ void transpose_quad(unsigned (&quad)[4]) {
#pragma unroll
  for (int step = 1; step <= 2; step *= 2) {
    const bool is_upper = threadIdx.x & step;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i & step) continue;
      const unsigned other = __shfl_xor_sync(0xffffffffu, is_upper ? quad[i] : quad[i + step], step);
      if (is_upper) quad[i] = other; else quad[i + step] = other;
    }
  }
}
// Pairs of bytes of two tiles in turn: those of the first one, then those of the second; and back.
__device__ __forceinline__ void zip_pairs(unsigned (&quad)[4]) {
  const unsigned a = quad[0], b = quad[1], c = quad[2], d = quad[3];
  quad[0] = (a & 0xffffu) | b << 16;
  quad[1] = (c & 0xffffu) | d << 16;
  quad[2] = a >> 16 | (b & 0xffff0000u);
  quad[3] = c >> 16 | (d & 0xffff0000u);
}
__device__ __forceinline__ void unzip_pairs(unsigned (&quad)[4]) {
  const unsigned a = quad[0], b = quad[1], c = quad[2], d = quad[3];
  quad[0] = (a & 0xffffu) | c << 16;
  quad[1] = a >> 16 | (c & 0xffff0000u);
  quad[2] = (b & 0xffffu) | d << 16;
  quad[3] = b >> 16 | (d & 0xffff0000u);
}

)cuda";
}

}  // namespace kiln::codegen
