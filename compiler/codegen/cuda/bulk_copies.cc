#include "compiler/codegen/cuda/bulk_copies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "compiler/ir/traverse.h"

namespace kiln::codegen {
namespace {
using arith::Linear;
using ir::Expr;
using ir::LoopKind;
using ir::Op;
using ir::Stmt;
using ir::StmtKind;

constexpr int32_t kOfPairs = 2;  // the hint's value
constexpr int64_t kGroupRows = 8, kWarpThreads = 32, kLeastSwizzleBytes = 32;
constexpr int64_t kBoxAlignment = 128;  // in shared memory

// Asynchronous copies and the ends of their groups, nothing else, and at least one of them.
bool IsCopies(Stmt stmt) {
  if (stmt->kind == StmtKind::kStore) return stmt->is_async;
  if (stmt->kind == StmtKind::kCommit) return true;
  return stmt->kind != StmtKind::kBarrier && stmt->num_children > 0 &&
         std::ranges::all_of(stmt->children(), IsCopies);
}

bool Uses(const Linear& form, int32_t var) {
  return std::ranges::any_of(form.terms,
                             [&](const arith::Term& term) { return ir::UsesVar(term.atom, var); });
}

bool IsInTurn(LoopKind kind) { return kind == LoopKind::kSerial || kind == LoopKind::kUnrolled; }

bool IsThread(LoopKind kind) { return kind >= LoopKind::kThreadX; }

// fn(condition) for each part of a && b.
template <typename Fn>
void VisitParts(Expr condition, Fn&& fn) {
  if (condition->op != Op::kAnd) return fn(condition);
  for (Expr part : condition->args()) VisitParts(part, fn);
}

}  // namespace

CudaBulkCopies::CudaBulkCopies(const ir::Program& program, const ir::Kernel& kernel,
                               const Swizzles& swizzles, CudaScope& scope, CudaExprs& exprs,
                               CudaBlocks& blocks, CudaNames& names, CudaPreamble& preamble)
    : program_(program),
      kernel_(kernel),
      swizzles_(swizzles),
      scope_(scope),
      exprs_(exprs),
      blocks_(blocks),
      names_(names),
      preamble_(preamble),
      is_used_(WantsBulkCopies(program, kernel)),
      has_pairs_(BulkCopiesOf(program, kernel) == kOfPairs) {
  if (is_used_) ring_status_ = status_ = FindRing();
}

// ---- the ring

Status CudaBulkCopies::FindRing() {
  if (kernel_.block[1] != 1 || kernel_.block[2] != 1 || kernel_.block[0] % kWarpThreads != 0)
    return InvalidArgument("its threads are not whole warps along x");
  if (!FindRingIn(kernel_.body)) {
    return InvalidArgument(
        "no loop has tiles that are copied ahead asynchronously, and nothing else behind its "
        "products");
  }
  for (const Stmt loop : around_) {
    if (loop->kind == StmtKind::kIf)
      return InvalidArgument("the loop over its tiles stands in a condition");
    const bool is_once = loop->loop_kind >= LoopKind::kBlockX || loop->extent == 1;
    if (!is_once) return InvalidArgument("the loop over its tiles runs several times");
  }
  return OkStatus();
}

bool CudaBulkCopies::FindRingIn(Stmt stmt) {
  if (stmt->kind == StmtKind::kSeq) {
    for (size_t i = 0; i < stmt->num_children; ++i) {
      if (MatchRing(stmt->children(), i)) return true;
    }
  }
  const bool is_around = stmt->kind == StmtKind::kFor || stmt->kind == StmtKind::kIf;
  if (is_around) around_.push_back(stmt);
  const bool found = std::ranges::any_of(stmt->children(), [&](Stmt s) { return FindRingIn(s); });
  if (is_around && !found) around_.pop_back();
  return found;
}

// barrier; work; if t < n - ahead { copies }; commit
bool CudaBulkCopies::MatchRing(std::span<const Stmt> stmts, size_t at) {
  const Stmt loop = stmts[at];
  if (loop->kind != StmtKind::kFor || !IsInTurn(loop->loop_kind) ||
      loop->body()->kind != StmtKind::kSeq || loop->body()->num_children < 4)
    return false;
  const std::span<const Stmt> body = loop->body()->children();
  const Stmt barrier = body.front(), more = body[body.size() - 2];
  if (barrier->kind != StmtKind::kBarrier || barrier->is_of_cluster || barrier->is_of_warp ||
      barrier->pending < 0 || body.back()->kind != StmtKind::kCommit ||
      more->kind != StmtKind::kIf || !IsCopies(more))
    return false;
  loop_ = loop;
  work_.assign(body.begin() + 1, body.end() - 2);
  ahead_count_ = barrier->pending + 1;
  for (size_t i = at; i-- > 0 && IsCopies(stmts[i]);) ahead_.insert(stmts[i]);
  std::vector<int32_t> vars;
  CollectCopies(more->body(), vars);
  return true;
}

void CudaBulkCopies::CollectCopies(Stmt stmt, std::vector<int32_t>& vars) {
  if (stmt->kind == StmtKind::kStore) copies_.push_back({stmt, vars});
  if (stmt->kind == StmtKind::kFor) vars.push_back(stmt->var);
  for (Stmt child : stmt->children()) CollectCopies(child, vars);
  if (stmt->kind == StmtKind::kFor) vars.pop_back();
}

// ---- the tiles

Status CudaBulkCopies::FindTiles() {
  tiles_.clear();
  depth_ = std::numeric_limits<int64_t>::max();
  for (const Copy& copy : copies_) {
    const std::vector<int64_t>& shape = exprs_.buffer(copy.store->slot).shape;
    depth_ = std::min(depth_, shape[0]);
    KILN_ASSIGN_OR_RETURN(Tile tile, FindTile(copy));
    const auto is_same = [&](const Tile& other) { return other.slot == tile.slot; };
    if (std::ranges::any_of(tiles_, is_same))
      return InvalidArgument("{} is copied in several parts", exprs_.buffer(tile.slot).name);
    tiles_.push_back(std::move(tile));
  }
  for (const Copy& copy : copies_) {
    if (exprs_.buffer(copy.store->slot).shape[0] != depth_)
      return InvalidArgument("its tiles have rings of different lengths");
  }
  if (depth_ > kMostBulkBuffers)
    return InvalidArgument("a ring has {} buffers, at most {} can be", depth_, kMostBulkBuffers);
  return OkStatus();
}

// Where one loop numbers all blocks.
void CudaBulkCopies::FindOrder() {
  block_grid_.reset();
  block_ = -1;
  const Stmt* only = nullptr;
  for (const Stmt& loop : around_) {
    if (loop->extent == 1 || IsThread(loop->loop_kind) || loop->loop_kind < LoopKind::kBlockX)
      continue;
    if (only != nullptr || loop->loop_kind != LoopKind::kBlockX) return;
    only = &loop;
  }
  if (only == nullptr) return;
  block_ = (*only)->var;
  std::vector<Linear> starts;
  for (const Tile& tile : tiles_) starts.insert(starts.end(), tile.start.begin(), tile.start.end());
  block_grid_ = FindBlockGrid(starts, (*only)->var, (*only)->extent);
  if (block_grid_) preamble_.block_order = true;
}

// Is it the same for all blocks of a column of tiles?
bool CudaBulkCopies::IsOfColumn(const Tile& tile) const {
  const auto is_of_column = [&](const arith::Term& term) {
    const Expr e = term.atom;
    if (!ir::UsesVar(e, block_)) return true;
    if (e->op != Op::kFloorMod && e->op != Op::kFloorDiv) return false;
    const int64_t all = block_grid_->rows * block_grid_->columns;
    return e->arg(0)->op == Op::kVar &&
           e->arg(1)->is_const_int(e->op == Op::kFloorMod ? block_grid_->columns : all);
  };
  return std::ranges::all_of(tile.start, [&](const Linear& start) {
    return std::ranges::all_of(start.terms, is_of_column);
  });
}

Status CudaBulkCopies::FindPersistent() {
  persistent_blocks_ = 0;
  const int32_t wanted = kernel_.hints[ir::Hint::kPersistentBlocks];
  if (wanted == 0) return OkStatus();
  if (block_ < 0 || kernel_.cluster > 1)
    return InvalidArgument("its blocks are not numbered by one loop, and can't be persistent");
  if (wanted >= kernel_.grid[0]) return OkStatus();
  if (has_pairs_ && wanted % 2 != 0)
    return InvalidArgument("{} persistent blocks are no pairs", wanted);
  if (loop_->extent % depth_ != 0) {
    return InvalidArgument(
        "a sum has {} tiles, which rings of {} buffers do not divide, as those of persistent "
        "blocks "
        "must",
        loop_->extent, depth_);
  }
  persistent_blocks_ = wanted;
  return OkStatus();
}

std::string CudaBulkCopies::Numbered(const std::string& tile) const {
  return persistent_blocks_ == 0 ? tile : fmt::format("({} * {} + {})", turn_, loop_->extent, tile);
}

Status CudaBulkCopies::ShareTiles() {
  if (kernel_.cluster > 1) return InvalidArgument("its blocks are clusters already, and no pairs");
  if (!block_grid_ || block_grid_->rows % 2 != 0)
    return InvalidArgument("its blocks are no pairs of a column of tiles");
  int shared = 0;
  for (Tile& tile : tiles_) {
    tile.is_shared = IsOfColumn(tile);
    if (!tile.is_shared) continue;
    ++shared;
    const bool has_groups = tile.map.box.size() > 1 && tile.map.box[1] % (2 * kGroupRows) == 0 &&
                            std::ranges::all_of(tile.map.box.begin() + 2, tile.map.box.end(),
                                                [](int64_t extent) { return extent == 1; });
    if (tile.panels % 2 == 0) {
      tile.half_panels = tile.panels / 2;
    } else if (tile.panels == 1 && has_groups) {
      tile.half_rows = tile.map.box[1] /= 2;
    } else {
      return InvalidArgument("{} has no halves", exprs_.buffer(tile.slot).name);
    }
  }
  if (shared == 1) return OkStatus();
  return InvalidArgument("blocks of a column of tiles have {} tiles in common, expected one",
                         shared);
}

StatusOr<CudaBulkCopies::Tile> CudaBulkCopies::FindTile(const Copy& copy) {
  const int32_t slot = copy.store->slot;
  const Expr load = ir::CopiedLoad(copy.store->value());
  const ir::Buffer& into = exprs_.buffer(slot);
  if (load == nullptr) return InvalidArgument("{} is no copy", into.name);
  const ir::Buffer& from = exprs_.buffer(load->id);
  const auto swizzle = swizzles_.find(slot);
  if (swizzle == swizzles_.end()) return InvalidArgument("{} is not swizzled", into.name);
  if (into.shape.size() != from.shape.size() + 1) {
    return InvalidArgument("{} has {} dimensions, a tile of {} would have {}", into.name,
                           into.shape.size(), from.name, from.shape.size() + 1);
  }
  std::vector<Linear> places;  // in the array
  KILN_ASSIGN_OR_RETURN(const std::vector<Linear> start, StartOf(copy, load, places));
  KILN_RETURN_IF_ERROR(CheckZeros(copy.store->value(), from.shape, places));

  const std::span<const int64_t> shape = std::span(into.shape).subspan(1);
  const int64_t bytes = into.type.bytes(), width = swizzle->second.width;
  Tile tile;
  tile.slot = slot;
  tile.map.arg = static_cast<uint32_t>(load->id);
  tile.map.element_bytes = static_cast<uint32_t>(bytes);
  if (swizzle->second.bytes >= kLeastSwizzleBytes)
    tile.map.swizzle_bytes = static_cast<uint32_t>(swizzle->second.bytes);
  tile.panels = shape.back() / width;
  tile.width = width;
  tile.panel = swizzle->second.panel;
  int64_t stride = bytes, rows = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    const bool is_last = d + 1 == shape.size();
    tile.map.extents.push_back(from.shape[d]);
    if (!is_last) tile.map.strides.push_back(stride);
    tile.map.box.push_back(is_last ? width : shape[d]);
    tile.start.push_back(start[d]);
    stride *= from.shape[d];
    if (!is_last) rows *= shape[d];
  }
  tile.buffer = rows * width;
  if (tile.buffer * bytes % kBoxAlignment != 0) {
    return InvalidArgument("the tiles of {} have {} bytes, no multiple of {}", into.name,
                           tile.buffer * bytes, kBoxAlignment);
  }
  if (swizzle->second.interleaved_rows > 0)
    KILN_RETURN_IF_ERROR(SplitRows(swizzle->second, shape, tile));
  KILN_RETURN_IF_ERROR(CheckTensorMap(tile.map));
  return tile;
}

// Where a tile starts: no thread and no loop over its elements changes that.
StatusOr<std::vector<Linear>> CudaBulkCopies::StartOf(const Copy& copy, Expr load,
                                                      std::vector<Linear>& places) {
  std::vector<Linear> start;
  for (size_t d = 0; d < load->num_args; ++d) {
    places.push_back(exprs_.IndexOf(load->arg(d)));
    start.push_back(places.back() - exprs_.IndexOf(copy.store->indices()[d + 1]));
    for (const int32_t var : copy.vars) {
      if (!Uses(start.back(), var)) continue;
      return InvalidArgument("neighbours of {} are no neighbours in {}",
                             exprs_.buffer(copy.store->slot).name, exprs_.buffer(load->id).name);
    }
    for (const Stmt loop : around_) {
      if (!IsThread(loop->loop_kind) || !Uses(start.back(), loop->var)) continue;
      return InvalidArgument("groups of threads have tiles of {} of their own",
                             exprs_.buffer(load->id).name);
    }
  }
  return start;
}

// Does the condition, condition < 0 or condition >= 0, hold where form < 0, or form >= 0? Conditions
// have been simplified: what all their terms are multiples of is divided by, and less than that left out.
bool CudaBulkCopies::Implies(const Linear& form, const Linear& condition, bool is_negative) {
  if (condition.is_constant()) return (condition.constant < 0) == is_negative;
  int64_t common = condition.constant;
  for (const arith::Term& term : condition.terms) common = std::gcd(common, term.coefficient);
  const arith::Term& first = condition.terms[0];
  const int64_t divisor = form.Coefficient(first.atom) / (first.coefficient / common);
  if (divisor < 1) return false;
  // form - divisor * condition / common
  Linear rest = form;
  rest.constant -= divisor * (condition.constant / common);
  for (const arith::Term& term : condition.terms)
    rest.AddTerm(term.atom, -divisor * (term.coefficient / common));
  const arith::Interval range = scope_.simplifier().RangeOf(rest);
  return is_negative ? range.lo >= 0 : range.hi < divisor;
}

// Zeros are nowhere but beyond the ends of the array: its inside fulfils all conditions. (And they keep
// whatever is read inside of it.)
Status CudaBulkCopies::CheckZeros(Expr value, std::span<const int64_t> shape,
                                  const std::vector<Linear>& places) {
  std::string unknown;
  const auto check = [&](Expr part) {
    if (part->is_const_int() && part->int_value != 0) return;
    bool is_implied = false;
    if (part->op == Op::kLt || part->op == Op::kGe) {
      const bool is_negative = part->op == Op::kLt;
      const Linear difference =
          scope_.simplifier().ToLinear(part->arg(0)) - scope_.simplifier().ToLinear(part->arg(1));
      for (size_t d = 0; d < places.size(); ++d) {
        is_implied |= Implies(is_negative ? places[d] - arith::Constant(shape[d]) : places[d],
                              difference, is_negative);
      }
    }
    if (!is_implied && unknown.empty()) unknown = exprs_.PrintSimplified(part).text;
  };
  for (; value->op == Op::kIf || value->op == Op::kSelect; value = value->arg(1))
    VisitParts(exprs_.SimplifyCondition(value->arg(0)), check);
  if (unknown.empty()) return OkStatus();
  return InvalidArgument(
      "zeros of its tiles are not those beyond the ends of an array, but where not {}", unknown);
}

// Of each 2 n rows lie one behind the other 8, the 8 that are n further on, the next 8, and so on
// (swizzle.h). The array is told of as [.., 2 n rows, n / 8 groups, 2 halves, 8 rows, columns].
Status CudaBulkCopies::SplitRows(const Swizzle& swizzle, std::span<const int64_t> shape, Tile& of) {
  const int64_t rows = swizzle.interleaved_rows;
  const std::string& name = exprs_.buffer(of.slot).name;
  if (of.map.extents.size() < 2 || of.map.extents[1] % rows != 0) {
    return InvalidArgument("{} has rows in groups of {}, which the array's are no multiple of",
                           name, rows);
  }
  // Dimensions outside of the rows continue them.
  int64_t all = of.map.extents[1] / rows;
  Linear start = of.start[1];
  for (size_t d = 2, of_rows = 1; d < of.map.extents.size(); ++d) {
    if (of.map.box[d] != 1) return InvalidArgument("{} has rows of several dimensions", name);
    of_rows *= static_cast<size_t>(of.map.extents[d - 1]);
    start = arith::MultiplyAdd(start, of.start[d], static_cast<int64_t>(of_rows));
    all *= of.map.extents[d];
  }
  start = scope_.simplifier().FloorDiv(start, rows);
  if (scope_.simplifier().FloorMod(of.start[1], rows) != arith::Constant(0))
    return InvalidArgument("{} does not start at a multiple of {} rows", name, rows);
  const int64_t stride = of.map.strides[0], groups = rows / (2 * kGroupRows);
  const Linear zero = arith::Constant(0);
  of.map.extents = {of.map.extents[0], kGroupRows, 2, groups, all};
  of.map.strides = {stride, groups * kGroupRows * stride, kGroupRows * stride, rows * stride};
  of.map.box = {of.map.box[0], kGroupRows, 2, groups, shape[shape.size() - 2] / rows};
  of.start = {of.start[0], zero, zero, zero, start};
  return OkStatus();
}

// ---- the text

std::string CudaBulkCopies::IndexText(const Linear& index) {
  return exprs_.PrintSimplified(scope_.simplifier().ToExpr(index)).text;
}

void CudaBulkCopies::EmitStart(std::string_view barriers,
                               const std::function<std::string(LoopKind)>& coordinate) {
  if (!ring_status_.ok()) return;
  iteration_ = scope_.OwnVar("tile that is copied", loop_->extent);
  half_ = scope_.OwnVar("block of a pair", 2);
  scope_.SetName(iteration_, scope_.name(loop_->var));
  scope_.SetValue(loop_->var, scope_.simplifier().Var(iteration_) - arith::Constant(ahead_count_));
  status_ = FindTiles();
  if (status_.ok()) FindOrder();
  if (status_.ok() && has_pairs_) status_ = ShareTiles();
  if (status_.ok()) status_ = FindPersistent();
  if (status_.ok()) {
    EmitBarriers(barriers);
    blocks_.Braced(fmt::format("if (threadIdx.x >= {}) {{  // copies", computing_threads()), [&] {
      EmitCopyingThread(coordinate);
      EmitEnd();
      blocks_.Line("return;");
    });
  }
  scope_.ResetValue(loop_->var);
}

void CudaBulkCopies::EmitBarriers(std::string_view barriers) {
  preamble_.bulk_copies = true;
  filled_ = names_.Unique("filled");
  emptied_ = names_.Unique("emptied");
  map_names_.clear();
  for (const Tile& tile : tiles_)
    map_names_.push_back(names_.Unique(exprs_.buffer_name(tile.slot) + "_map"));
  const int64_t threads = computing_threads();
  blocks_.Line(
      fmt::format("unsigned long long* const {} = reinterpret_cast<unsigned long long*>({});  // "
                  "[{}], of tiles",
                  filled_, barriers, depth_));
  blocks_.Line(fmt::format("unsigned long long* const {} = {} + {};", emptied_, filled_, depth_));
  blocks_.Braced(fmt::format("if (threadIdx.x == {}) {{", threads), [&] {
    blocks_.Line(fmt::format("start_barriers<{}, {}>({}, {});", depth_,
                             threads / kWarpThreads * (has_pairs_ ? 2 : 1), filled_, emptied_));
  });
  blocks_.Line(has_pairs_ ? "meet_pair();" : "__syncthreads();");
}

// One thread for all: it needs the numbers of the blocks, and nothing of threads.
void CudaBulkCopies::EmitCopyingThread(const std::function<std::string(LoopKind)>& coordinate) {
  std::vector<Stmt> block_loops;
  for (const Stmt loop : around_) {
    if (loop->extent > 1 && loop->loop_kind >= LoopKind::kBlockX && !IsThread(loop->loop_kind))
      block_loops.push_back(loop);
  }
  const auto inside = [&](auto& self, size_t i) -> void {
    if (i == block_loops.size()) return EmitAllCopies();
    const int32_t var = block_loops[i]->var;
    if (IsOfPersistentBlocks(block_loops[i]))
      return EmitTiles(block_loops[i], [&] { self(self, i + 1); });
    blocks_.Bound(
        var,
        fmt::format("const int {} = {};", scope_.name(var), coordinate(block_loops[i]->loop_kind)),
        [&] { self(self, i + 1); });
  };
  blocks_.Braced(fmt::format("if (threadIdx.x == {}) {{", computing_threads()), [&] {
    if (has_pairs_) {
      scope_.SetName(half_, names_.Unique("of_pair"));
      blocks_.Line(fmt::format("const int {} = blockIdx.x % 2;", scope_.name(half_)));
    }
    inside(inside, 0);
  });
}

void CudaBulkCopies::EmitAllCopies() {
  scope_.SetName(iteration_, names_.Unique(scope_.name(loop_->var)));
  blocks_.Loop(iteration_, loop_->extent, 1, [&] {
    const std::string buffer = names_.Unique("buffer"), &u = scope_.name(iteration_);
    blocks_.Line(fmt::format("const int {} = {} % {};", buffer, u, depth_));
    const std::string number = Numbered(u);
    blocks_.Line(fmt::format("if ({} >= {}) wait_for(&{}[{}], ({} / {} + 1) % 2);", number, depth_,
                             emptied_, buffer, number, depth_));
    EmitCopies(buffer, fmt::format("&{}[{}]", filled_, buffer));
  });
}

void CudaBulkCopies::EmitCopies(std::string_view buffer, std::string_view filled) {
  int64_t bytes = 0;
  for (const Tile& tile : tiles_) bytes += tile.bytes();
  blocks_.Line(fmt::format("expect_bytes({}, {});", filled, bytes));
  for (size_t i = 0; i < tiles_.size(); ++i) EmitTile(tiles_[i], map_names_[i], buffer, filled);
}

// Of a tile that pairs share the block's half.
void CudaBulkCopies::EmitTile(const Tile& tile, const std::string& map, std::string_view buffer,
                              std::string_view filled) {
  const Linear half = scope_.simplifier().Var(half_);
  const int64_t panels = tile.half_panels > 0 ? tile.half_panels : tile.panels;
  for (int64_t p = 0; p < panels; ++p) {
    const Linear panel = arith::Constant(p) + half * tile.half_panels;
    std::vector<Linear> start = tile.start;
    start[0] = start[0] + panel * tile.width;
    Linear offset = panel * tile.panel;
    if (tile.half_rows > 0) {
      start[1] = start[1] + half * tile.half_rows;
      offset = offset + half * (tile.half_rows * tile.width);
    }
    std::vector<std::string> texts;
    for (const Linear& at : start) texts.push_back(IndexText(at));
    blocks_.Line(fmt::format("{}(&{}[{} * {} + {}], &{}, {}, {});",
                             tile.is_shared ? "copy_box_to_pair" : "copy_box",
                             exprs_.buffer_name(tile.slot), buffer, tile.buffer, IndexText(offset),
                             map, filled, fmt::join(texts, ", ")));
  }
}

void CudaBulkCopies::EmitArrival() {
  const std::string& t = scope_.name(loop_->var);
  blocks_.Line(
      fmt::format("wait_for(&{}[{} % {}], {} / {} % 2);", filled_, t, depth_, Numbered(t), depth_));
}

void CudaBulkCopies::EmitEnd() {
  if (has_pairs_) blocks_.Line("meet_pair();");
}

void CudaBulkCopies::EmitRelease(bool is_next_under_way) {
  const std::string& t = scope_.name(loop_->var);
  const std::string which = is_next_under_way ? fmt::format("({} - 1)", t) : t;
  blocks_.Line(fmt::format("if (threadIdx.x % 32 == 0{}) {}(&{}[{} % {}]);",
                           is_next_under_way ? fmt::format(" && {} > 0", t) : "",
                           has_pairs_ ? "release_pair" : "release", emptied_, which, depth_));
}

void CudaBulkCopies::EmitReleaseOfLast() {
  if (persistent_blocks_ == 0) return;
  blocks_.Line(fmt::format("if (threadIdx.x % 32 == 0) {}(&{}[{}]);",
                           has_pairs_ ? "release_pair" : "release", emptied_,
                           (loop_->extent - 1) % depth_));
}

std::vector<TensorMap> CudaBulkCopies::maps() const {
  std::vector<TensorMap> maps;
  for (const Tile& tile : tiles_) maps.push_back(tile.map);
  return maps;
}

std::string_view BulkCopyDefinitions() {
  return R"cuda(// From sm_90 on: tiles that the bulk copy engine brings, told by one thread.
struct alignas(64) TensorMap {
  unsigned long long words[16];  // CUtensorMap
};
__device__ __forceinline__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
// A tile is there when the engine has brought it; its buffer is empty when each warp has said so.
template <int kBuffers, int kWarps>
__device__ __forceinline__ void start_barriers(unsigned long long* filled, unsigned long long* emptied) {
#pragma unroll
  for (int i = 0; i < kBuffers; ++i) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&filled[i])) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&emptied[i])), "r"(kWarps)
                 : "memory");
  }
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// Until the phase of this parity has ended.
__device__ __forceinline__ void wait_for(unsigned long long* barrier, unsigned parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n}\n" ::"r"(shared_address(barrier)), "r"(parity)
      : "memory");
}
__device__ __forceinline__ void release(unsigned long long* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
__device__ __forceinline__ void expect_bytes(unsigned long long* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void copy_box(void* to, const TensorMap* map, unsigned long long* barrier, int x) {
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3}], [%2];"
      ::"r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"(x) : "memory");
}
__device__ __forceinline__ void copy_box(void* to, const TensorMap* map, unsigned long long* barrier, int x,
                                         int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
      ::"r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y) : "memory");
}
__device__ __forceinline__ void copy_box(void* to, const TensorMap* map, unsigned long long* barrier, int x,
                                         int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];"
      ::"r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z) : "memory");
}
__device__ __forceinline__ void copy_box(void* to, const TensorMap* map, unsigned long long* barrier, int x,
                                         int y, int z, int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];"
      ::"r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}
__device__ __forceinline__ void copy_box(void* to, const TensorMap* map, unsigned long long* barrier, int x,
                                         int y, int z, int w, int v) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], [%2];"
      ::"r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v)
      : "memory");
}
// Of a pair of blocks, a cluster: all of their threads meet; into the shared memory of both; what both
// have at this place.
__device__ __forceinline__ void meet_pair() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
__device__ __forceinline__ void copy_box_to_pair(void* to, const TensorMap* map, unsigned long long* barrier,
                                                 int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)),
      "r"(x), "r"(y), "h"(static_cast<unsigned short>(3)) : "memory");
}
__device__ __forceinline__ void copy_box_to_pair(void* to, const TensorMap* map, unsigned long long* barrier,
                                                 int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(shared_address(to)), "l"(map),
      "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "h"(static_cast<unsigned short>(3)) : "memory");
}
__device__ __forceinline__ void copy_box_to_pair(void* to, const TensorMap* map, unsigned long long* barrier,
                                                 int x, int y, int z, int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(shared_address(to)), "l"(map),
      "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w), "h"(static_cast<unsigned short>(3))
      : "memory");
}
__device__ __forceinline__ void release_pair(unsigned long long* barrier) {
#pragma unroll
  for (int block = 0; block < 2; ++block) {
    asm volatile(
        "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n}\n" ::"r"(shared_address(barrier)),
        "r"(block) : "memory");
  }
}
// The threads that compute wait for each other.
template <int kThreads>
__device__ __forceinline__ void barrier_of_computing() {
  asm volatile("bar.sync 1, %0;" ::"n"(kThreads) : "memory");
}

)cuda";
}

}  // namespace kiln::codegen
