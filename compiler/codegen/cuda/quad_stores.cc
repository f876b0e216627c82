#include "compiler/codegen/cuda/quad_stores.h"

#include <algorithm>

#include "compiler/codegen/cuda/types.h"
#include "compiler/ir/traverse.h"

namespace kiln::codegen {
namespace {
using arith::Linear;
using ir::Expr;
using ir::Op;
using ir::Stmt;
using ir::StmtKind;

constexpr int64_t kQuad = 4, kPair = 2, kColumns = kQuad * kPair;

// The store of pairs in a loop.
Stmt PairsOf(Stmt loop) {
  if (loop->extent % kQuad != 0 || loop->extent == 0 || loop->body()->kind != StmtKind::kFor)
    return nullptr;
  const Stmt pair = loop->body();
  const bool is_pair = pair->loop_kind == ir::LoopKind::kVectorized && pair->extent == kPair;
  return is_pair && pair->body()->kind == StmtKind::kStore ? pair->body() : nullptr;
}

std::string_view PackedName(ir::Type type) { return type == ir::kFloat16 ? "f16" : "bf16"; }

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
  scope_.SetValue(loop->var, scope_.simplifier().Var(group_) * kQuad + arith::Constant(v));
  scope_.SetValue(loop->body()->var, arith::Constant(lane));
  Linear place = exprs_.PlaceOf(access.slot, access.indices).offset;
  scope_.ResetValue(loop->var);
  scope_.ResetValue(loop->body()->var);
  return place;
}

bool CudaQuadStores::IsOfQuads(Stmt loop, const Access& access, int32_t thread) {
  const ir::Type type = exprs_.buffer(access.slot).type;
  if (type != ir::kFloat16 && type != ir::kBFloat16) return false;
  const Linear first = PlaceAt(loop, access, 0, 0);
  if (PlaceAt(loop, access, 0, 1) - first != arith::Constant(1)) return false;
  for (int64_t v = 1; v < kQuad; ++v) {
    if (PlaceAt(loop, access, v, 0) - first != arith::Constant(v * kColumns)) return false;
  }
  arith::Simplifier& simplifier = scope_.simplifier();
  const Linear rest = first - simplifier.FloorMod(simplifier.Var(thread), kQuad) * kPair;
  return vectors_.MultipleOf(rest) % kColumns == 0 &&
         std::ranges::all_of(
             rest.terms, [&](const arith::Term& term) { return IsSameInQuad(term.atom, thread); });
}

bool CudaQuadStores::Matches(Stmt loop, Stmt store, int32_t thread) {
  const ir::Buffer& out = exprs_.buffer(store->slot);
  return out.scope <= ir::Scope::kWorkspace && !store->is_async && !out.shape.empty() &&
         IsOfQuads(loop, {store->slot, store->indices()}, thread) && FindLoads(loop, store, thread);
}

// The 16 bytes of the thread.
std::string CudaQuadStores::Vector(Stmt loop, const Access& access, int32_t thread) {
  arith::Simplifier& simplifier = scope_.simplifier();
  const Linear place = PlaceAt(loop, access, 0, 0) +
                       simplifier.FloorMod(simplifier.Var(thread), kQuad) * (kColumns - kPair);
  return exprs_.Element(access.slot, {.offset = place, .block = {}});
}

// Values are computed in float, and rounded here.
std::string CudaQuadStores::PairAt(Stmt loop, Stmt store, int64_t v,
                                   const std::vector<std::string>& loaded) {
  const Expr value = store->value();
  const bool is_rounded = value->op == Op::kCast && value->arg(0)->type == ir::kFloat32;
  std::string parts;
  for (const int64_t lane : {0, 1}) {
    scope_.SetValue(loop->var, scope_.simplifier().Var(group_) * kQuad + arith::Constant(v));
    scope_.SetValue(loop->body()->var, arith::Constant(lane));
    for (size_t i = 0; i < loads_.size(); ++i) {
      exprs_.HoldLoad(loads_[i].load,
                      fmt::format("reinterpret_cast<const {}*>(&{}[{}])[{}]",
                                  CudaTypeName(loads_[i].load->type), loaded[i], v, lane));
    }
    parts += (lane == 0 ? "" : ", ") + exprs_.Print(is_rounded ? value->arg(0) : value).text;
  }
  if (!loads_.empty()) exprs_.ForgetLoads();
  scope_.ResetValue(loop->var);
  scope_.ResetValue(loop->body()->var);
  return fmt::format("pack_{}({})", PackedName(exprs_.buffer(store->slot).type), parts);
}

bool CudaQuadStores::Emit(Stmt loop, int32_t thread) {
  const Stmt store = PairsOf(loop);
  if (store == nullptr) return false;
  group_ = scope_.OwnVar("quad of stores", loop->extent / kQuad);
  if (!Matches(loop, store, thread)) return false;
  preamble_.quads = true;
  preamble_.packed_types.insert(PackedName(exprs_.buffer(store->slot).type));
  scope_.SetName(group_, names_.Unique(scope_.name(loop->var) + "_quad"));
  const int64_t groups = loop->extent / kQuad;
  blocks_.Loop(group_, groups, groups, [&] {
    std::vector<std::string> loaded;
    for (const Access& load : loads_) {
      const std::string vector = names_.Unique("loaded");
      loaded.push_back(names_.Unique("quad"));
      blocks_.Line(fmt::format("const uint4 {} = *reinterpret_cast<const uint4*>(&{});", vector,
                               Vector(loop, load, thread)));
      blocks_.Line(
          fmt::format("unsigned {0}[4] = {{{1}.x, {1}.y, {1}.z, {1}.w}};", loaded.back(), vector));
      blocks_.Line(fmt::format("transpose_quad({});", loaded.back()));
    }
    const std::string quad = names_.Unique("quad");
    blocks_.Line(fmt::format("unsigned {}[4];", quad));
    for (int64_t v = 0; v < kQuad; ++v)
      blocks_.Line(fmt::format("{}[{}] = {};", quad, v, PairAt(loop, store, v, loaded)));
    blocks_.Line(fmt::format("transpose_quad({});", quad));
    blocks_.Line(
        fmt::format("*reinterpret_cast<uint4*>(&{0}) = make_uint4({1}[0], {1}[1], {1}[2], {1}[3]);",
                    Vector(loop, {store->slot, store->indices()}, thread), quad));
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

)cuda";
}

}  // namespace kiln::codegen
