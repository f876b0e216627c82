#include "compiler/codegen/cuda/quad_stores.h"

#include <algorithm>

#include "compiler/codegen/cuda/narrow_floats.h"
#include "compiler/codegen/cuda/types.h"
#include "compiler/ir/integer_ops.h"
#include "compiler/ir/traverse.h"

namespace kiln::codegen {
namespace {
using arith::Linear;
using ir::Expr;
using ir::Op;
using ir::Stmt;
using ir::StmtKind;

constexpr int64_t kQuad = 4, kPair = 2, kColumns = kQuad * kPair, kVectorBytes = 16;

// What a condition that stands alone is around; else the statement.
Stmt InsideOf(Stmt stmt) { return stmt->kind == StmtKind::kIf ? stmt->body() : stmt; }

// The pairs of a loop. They and their stores may stand in conditions.
Stmt PairsOf(Stmt loop) {
  if (loop->extent == 0) return nullptr;
  const Stmt pair = InsideOf(loop->body());
  const bool is_pair = pair->kind == StmtKind::kFor &&
                       pair->loop_kind == ir::LoopKind::kVectorized && pair->extent == kPair;
  return is_pair && InsideOf(pair->body())->kind == StmtKind::kStore ? pair : nullptr;
}

bool IsStored(ir::Type type) {
  return type == ir::kFloat32 || type == ir::kInt32 || !NarrowFloatName(type).empty();
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

// The number of a tile of the row, or of the group, in the loop.
Linear CudaQuadStores::InRow(const Linear& tile) const {
  return rows_ > 1 ? scope_.simplifier().Var(row_) * tiles_of_row_ + tile : tile;
}

Linear CudaQuadStores::InGroup(const Linear& tile) const {
  return InRow(scope_.simplifier().Var(group_) * tiles_ + tile);
}

void CudaQuadStores::SetRows(Stmt loop, int64_t tiles_of_row) {
  tiles_of_row_ = tiles_of_row;
  rows_ = loop->extent / tiles_of_row;
  row_ = scope_.OwnVar("row of stores", rows_);
  group_ = scope_.OwnVar("quad of stores", std::max<int64_t>(1, tiles_of_row / tiles_));
}

Linear CudaQuadStores::PlaceAt(Stmt loop, const Access& access, int64_t v, int64_t lane) {
  return PlaceOf(loop, access, InGroup(arith::Constant(v)), lane);
}

// `tile`: its number in the loop.
Linear CudaQuadStores::PlaceOf(Stmt loop, const Access& access, const Linear& tile, int64_t lane) {
  scope_.SetValue(loop->var, tile);
  scope_.SetValue(pairs_->var, arith::Constant(lane));
  Linear place = exprs_.PlaceOf(access.slot, access.indices).offset;
  scope_.ResetValue(loop->var);
  scope_.ResetValue(pairs_->var);
  return place;
}

bool CudaQuadStores::IsOfQuads(Stmt loop, const Access& access, int32_t thread) {
  const ir::Type type = exprs_.buffer(access.slot).type;
  if (!IsStored(type) || type.bytes() * tiles_ != kColumns) return false;
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

// Likewise, where groups of tiles would go from one row to the next: each row has its own.
bool CudaQuadStores::MatchesInRows(Stmt loop, Stmt store, int32_t thread) {
  SetRows(loop, loop->extent);
  if (Matches(loop, store, thread)) return true;
  const auto place = [&](int64_t tile) {
    return PlaceOf(loop, {store->slot, store->indices()}, arith::Constant(tile), 0);
  };
  const Linear first = place(0);
  int64_t tiles = 1;
  while (tiles < loop->extent && place(tiles) - first == arith::Constant(tiles * kColumns)) ++tiles;
  if (tiles < tiles_ || tiles == loop->extent || loop->extent % tiles != 0) return false;
  SetRows(loop, tiles);
  return Matches(loop, store, thread);
}

// False: a condition that is not the same for the columns of a tile.
bool CudaQuadStores::FindLimits(Stmt loop, Expr where, int32_t thread) {
  limits_.clear();
  always_ = nullptr;
  tile_ = scope_.OwnVar("tile of a quad", tiles_);
  lane_ = scope_.OwnVar("neighbour", kPair);
  arith::Simplifier& simplifier = scope_.simplifier();
  scope_.SetValue(loop->var, InGroup(simplifier.Var(tile_)));
  scope_.SetValue(pairs_->var, simplifier.Var(lane_));
  bool fits = where == nullptr || AddLimits(where, thread);
  for (const Stmt around : {loop->body(), pairs_->body()}) {
    if (fits && around->kind == StmtKind::kIf) fits = AddLimits(around->condition(), thread);
  }
  scope_.ResetValue(loop->var);
  scope_.ResetValue(pairs_->var);
  return fits;
}

bool CudaQuadStores::AddLimits(Expr condition, int32_t thread) {
  if (condition->op == Op::kAnd)
    return AddLimits(condition->arg(0), thread) && AddLimits(condition->arg(1), thread);
  const Expr simplified = exprs_.SimplifyCondition(condition);
  if (simplified->is_const_int() && simplified->int_value != 0) return true;
  if (std::optional<Limit> limit = LimitOf(condition, thread)) {
    limits_.push_back(*std::move(limit));
    return true;
  }
  if (ir::UsesVar(simplified, tile_) || ir::UsesVar(simplified, lane_) ||
      !IsSameInQuad(simplified, thread))
    return false;
  always_ = always_ == nullptr ? simplified : scope_.pool().And(always_, simplified);
  return true;
}

// For 0 <= r < m and any q:  m q + r < 0  is  m q < 0. Here r says which of the tile's columns it is.
std::optional<CudaQuadStores::Limit> CudaQuadStores::LimitOf(Expr comparison, int32_t thread) {
  if ((comparison->op != Op::kLt && comparison->op != Op::kGe) ||
      comparison->arg(0)->type != ir::kIndex || ir::HasLoad(comparison))
    return std::nullopt;
  arith::Simplifier& simplifier = scope_.simplifier();
  Limit limit = {comparison->op,
                 exprs_.IndexOf(comparison->arg(0)) - exprs_.IndexOf(comparison->arg(1))};
  const Linear in_quad = simplifier.FloorMod(simplifier.Var(thread), kQuad),
               lane = simplifier.Var(lane_);
  Linear column;
  for (const Linear& part : {in_quad, lane}) {
    if (part.terms.size() != 1) return std::nullopt;
    column = column + part * limit.difference.Coefficient(part.terms[0].atom);
  }
  limit.difference = limit.difference - column;
  const bool is_of_tile = std::ranges::all_of(limit.difference.terms, [&](const arith::Term& term) {
    return term.atom == simplifier.Var(tile_).terms[0].atom ||
           (!ir::UsesVar(term.atom, tile_) && !ir::UsesVar(term.atom, lane_) &&
            IsSameInQuad(term.atom, thread));
  });
  const arith::Interval range = simplifier.RangeOf(column);
  const int64_t multiple = vectors_.MultipleOf(limit.difference);
  if (!is_of_tile || !range.bounded() || range.lo < 0 || (multiple != 0 && range.hi >= multiple))
    return std::nullopt;
  return limit;
}

// Null: there is none.
Expr CudaQuadStores::GuardAt(const Linear& tile) {
  arith::Simplifier& simplifier = scope_.simplifier();
  Expr guard = always_;
  for (const Limit& limit : limits_) {
    const Linear number = simplifier.Var(tile_);
    Linear sum =
        limit.difference + (tile - number) * limit.difference.Coefficient(number.terms[0].atom);
    const int64_t constant = sum.constant;
    sum.constant = 0;
    // m q + c < 0 for the least c that says the same.
    const int64_t multiple = std::max<int64_t>(1, vectors_.MultipleOf(sum));
    const int64_t least = ir::FloorDiv(constant, multiple) * multiple;
    const Expr holds = simplifier.Simplify(
        scope_.pool().Binary(limit.op, simplifier.ToExpr(sum), scope_.pool().Int(-least)));
    if (holds->is_const_int() && holds->int_value != 0) continue;
    guard = guard == nullptr ? holds : scope_.pool().And(guard, holds);
  }
  return guard;
}

// False: the 16 bytes of a thread have tiles that are inside and others.
bool CudaQuadStores::FindGuards(int32_t thread) {
  arith::Simplifier& simplifier = scope_.simplifier();
  guards_.clear();
  for (int64_t v = 0; v < tiles_; ++v) guards_.push_back(GuardAt(arith::Constant(v)));
  const int64_t of_vector = std::max<int64_t>(1, tiles_ / kQuad);
  const Linear first =
      simplifier.FloorMod(simplifier.Var(thread), std::min(tiles_, kQuad)) * of_vector;
  vector_guard_ = GuardAt(first);
  for (int64_t v = 1; v < of_vector; ++v) {
    if (GuardAt(first + arith::Constant(v)) != vector_guard_) return false;
  }
  return true;
}

template <typename Body>
void CudaQuadStores::Guarded(Expr guard, Body&& body) {
  if (guard == nullptr) return body();
  if (!guard->is_const_int(0)) blocks_.If(guard, body);
}

// The 16 bytes of the thread.
std::string CudaQuadStores::Vector(Stmt loop, const Access& access, int32_t thread) {
  arith::Simplifier& simplifier = scope_.simplifier();
  const int64_t elements = kVectorBytes / exprs_.buffer(access.slot).type.bytes();
  const Linear number = simplifier.Var(thread), first = PlaceAt(loop, access, 0, 0);
  const Linear place = tiles_ < kQuad
                           ? first + simplifier.FloorMod(number, 2) * (kColumns - kPair)
                           : first + simplifier.FloorMod(number, kQuad) * (elements - kPair);
  return exprs_.Element(access.slot, {.offset = place, .block = {}});
}

// What a register holds of it; or what each of two does.
std::vector<std::string> CudaQuadStores::PairAt(Stmt loop, Stmt store, int64_t v,
                                                const std::vector<std::string>& loaded) {
  const Expr value = store->value();
  const ir::Type type = exprs_.buffer(store->slot).type;
  const bool is_packed = type.bytes() < 4;
  std::vector<std::string> parts;
  for (const int64_t lane : {0, 1}) {
    scope_.SetValue(loop->var, InGroup(arith::Constant(v)));
    scope_.SetValue(pairs_->var, arith::Constant(lane));
    for (size_t i = 0; i < loads_.size(); ++i) {
      exprs_.HoldLoad(loads_[i].load,
                      fmt::format("reinterpret_cast<const {}*>({})[{}]",
                                  CudaTypeName(loads_[i].load->type), loaded[i], v * kPair + lane));
    }
    parts.push_back(exprs_.Print(is_packed && IsRounded(value) ? value->arg(0) : value).text);
  }
  if (!loads_.empty()) exprs_.ForgetLoads();
  scope_.ResetValue(loop->var);
  scope_.ResetValue(pairs_->var);
  if (is_packed) return {fmt::format("pack_{}({}, {})", NarrowFloatName(type), parts[0], parts[1])};
  for (std::string& part : parts)
    part =
        fmt::format("{}({})", type.is_float() ? "__float_as_uint" : "static_cast<unsigned>", part);
  return parts;
}

// The registers of each load.
std::vector<std::string> CudaQuadStores::EmitLoads(Stmt loop, int32_t thread) {
  std::vector<std::string> loaded;
  for (const Access& load : loads_) {
    const std::string vector = names_.Unique("loaded"),
                      &quad = loaded.emplace_back(names_.Unique("quad"));
    blocks_.Line(fmt::format("unsigned {}[4] = {{}};", quad));
    Guarded(vector_guard_, [&] {
      blocks_.Line(fmt::format("const uint4 {} = *reinterpret_cast<const uint4*>(&{});", vector,
                               Vector(loop, load, thread)));
      blocks_.Line(fmt::format("{0}[0] = {1}.x, {0}[1] = {1}.y, {0}[2] = {1}.z, {0}[3] = {1}.w;",
                               quad, vector));
    });
    EmitExchange(quad, /*is_loaded=*/true);
  }
  return loaded;
}

void CudaQuadStores::EmitExchange(const std::string& quad, bool is_loaded) {
  if (tiles_ < kQuad) return blocks_.Line(fmt::format("exchange_pairs({});", quad));
  if (is_loaded && tiles_ > kQuad) blocks_.Line(fmt::format("unzip_pairs({});", quad));
  blocks_.Line(fmt::format("transpose_quad({});", quad));
  if (!is_loaded && tiles_ > kQuad) blocks_.Line(fmt::format("zip_pairs({});", quad));
}

// What the registers hold of the tiles. Those with one condition stand in it together.
void CudaQuadStores::EmitValues(Stmt loop, const std::string& quad,
                                const std::vector<std::string>& loaded) {
  const Stmt store = InsideOf(pairs_->body());
  const auto emit = [&](int64_t v) {
    const std::vector<std::string> pair = PairAt(loop, store, v, loaded);
    const bool is_second = tiles_ > kQuad && v % 2 != 0;  // of its register
    for (int64_t i = 0; i < std::ssize(pair); ++i) {
      blocks_.Line(fmt::format("{}[{}] {} {}{};", quad, v * kQuad / tiles_ + i,
                               is_second ? "|=" : "=", pair[static_cast<size_t>(i)],
                               is_second ? " << 16" : ""));
    }
  };
  for (auto first = guards_.begin(); first != guards_.end();) {
    const auto end =
        std::find_if(first, guards_.end(), [&](Expr guard) { return guard != *first; });
    Guarded(*first, [&] {
      for (auto tile = first; tile != end; ++tile) emit(tile - guards_.begin());
    });
    first = end;
  }
}

void CudaQuadStores::EmitGroup(Stmt loop, int32_t thread) {
  const Stmt store = InsideOf(pairs_->body());
  const std::vector<std::string> loaded = EmitLoads(loop, thread);
  const std::string quad = names_.Unique("quad");
  const bool is_whole = std::ranges::all_of(guards_, [](Expr guard) { return guard == nullptr; });
  blocks_.Line(fmt::format("unsigned {}[4]{};", quad, is_whole ? "" : " = {}"));
  EmitValues(loop, quad, loaded);
  EmitExchange(quad, /*is_loaded=*/false);
  Guarded(vector_guard_, [&] {
    blocks_.Line(
        fmt::format("*reinterpret_cast<uint4*>(&{0}) = make_uint4({1}[0], {1}[1], {1}[2], {1}[3]);",
                    Vector(loop, {store->slot, store->indices()}, thread), quad));
  });
}

bool CudaQuadStores::Emit(Stmt loop, int32_t thread, Expr where, EmitOne rest) {
  pairs_ = PairsOf(loop);
  if (pairs_ == nullptr) return false;
  const Stmt store = InsideOf(pairs_->body());
  const ir::Type type = exprs_.buffer(store->slot).type;
  tiles_ = kColumns / type.bytes();
  if (tiles_ < 2 || loop->extent < tiles_) return false;
  if (!MatchesInRows(loop, store, thread) || !FindLimits(loop, where, thread) ||
      !FindGuards(thread))
    return false;
  preamble_.quads = true;
  if (tiles_ >= kQuad) preamble_.packed_types.insert(NarrowFloatName(type));
  const std::string& name = scope_.name(loop->var);
  if (rows_ > 1) scope_.SetName(row_, names_.Unique(name + "_row"));
  scope_.SetName(group_, names_.Unique(name + "_quad"));
  const auto emit_row = [&] { EmitRow(loop, thread, where, rest); };
  rows_ > 1 ? blocks_.Loop(row_, rows_, rows_, emit_row) : emit_row();
  return true;
}

void CudaQuadStores::EmitRow(Stmt loop, int32_t thread, Expr where, EmitOne rest) {
  const int64_t groups = tiles_of_row_ / tiles_;
  blocks_.Loop(group_, groups, groups, [&] { EmitGroup(loop, thread); });
  for (int64_t v = groups * tiles_; v < tiles_of_row_; ++v) {
    scope_.SetValue(loop->var, InRow(arith::Constant(v)));
    if (where == nullptr) {
      rest(loop->body());
    } else {
      blocks_.Where(where, [&] { rest(loop->body()); });
    }
  }
  scope_.ResetValue(loop->var);
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
// Of two threads that follow each other, the first gets what both have in registers 0 and 1, the other one
// what they have in 2 and 3.
__device__ __forceinline__ void exchange_pairs(unsigned (&quad)[4]) {
  const bool is_odd = threadIdx.x & 1;
  const unsigned a = __shfl_xor_sync(0xffffffffu, is_odd ? quad[0] : quad[2], 1),
                 b = __shfl_xor_sync(0xffffffffu, is_odd ? quad[1] : quad[3], 1);
  if (is_odd) quad[0] = a, quad[1] = b; else quad[2] = a, quad[3] = b;
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
