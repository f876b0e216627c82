#include "compiler/codegen/cuda/bulk_copies.h"

#include <algorithm>
#include <limits>

#include "base/numbers/integers.h"
#include "compiler/codegen/cuda/buffer_use.h"
#include "compiler/codegen/cuda/bulk_zeros.h"
#include "compiler/codegen/cuda/visits.h"
#include "compiler/codegen/cuda/warp_reduce.h"
#include "compiler/instructions/bulk_copy.h"
#include "compiler/instructions/matrix_unit.h"
#include "compiler/ir/traverse.h"

namespace kiln::codegen {
namespace {
using arith::Linear;
using instructions::kBoxAlignment;
using instructions::kBoxPieceBytes;
using ir::Expr;
using ir::LoopKind;
using ir::Op;
using ir::Stmt;
using ir::StmtKind;

constexpr int32_t kOfPairs = 2;  // the hint's value

bool IsInTurn(LoopKind kind) { return kind == LoopKind::kSerial || kind == LoopKind::kUnrolled; }

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
      is_used_(WantsBulkCopies(program, kernel) && FindVisits(program, kernel).loop == nullptr),
      has_pairs_(BulkCopiesOf(program, kernel) == kOfPairs) {
  if (is_used_) ring_status_ = status_ = FindRing();
}

// ---- the ring

Status CudaBulkCopies::FindRing() {
  if (kernel_.block[1] != 1 || kernel_.block[2] != 1 || kernel_.block[0] % kWarpThreads != 0)
    return InvalidArgument("its threads are not whole warps along x");
  if (!FindRingIn(kernel_.body)) {
    return InvalidArgument(
        "no loop has tiles that are copied ahead asynchronously, "
        "and nothing else behind its products");
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
  std::vector<int32_t> vars;
  CollectCopies(more->body(), vars);
  if (copies_.empty()) return false;
  loop_ = loop;
  work_.assign(body.begin() + 1, body.end() - 2);
  ahead_count_ = barrier->pending + 1;
  for (size_t i = at; i-- > 0 && IsCopies(stmts[i]);) ahead_.insert(stmts[i]);
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
  if (std::ranges::count_if(tiles_, [](const Tile& tile) { return tile.pieces.has_value(); }) > 1)
    return InvalidArgument("the last rows of several tiles come in pieces, expected one");
  if (depth_ > instructions::kMaxBulkBuffers)
    return InvalidArgument("a ring has {} buffers, at most {} can be", depth_,
                           instructions::kMaxBulkBuffers);
  return OkStatus();
}

std::vector<Stmt> CudaBulkCopies::BlockLoops() const {
  std::vector<Stmt> loops;
  for (const Stmt loop : around_) {
    if (loop->extent > 1 && loop->loop_kind >= LoopKind::kBlockX && !IsThread(loop->loop_kind))
      loops.push_back(loop);
  }
  return loops;
}

// Where one loop numbers all blocks.
void CudaBulkCopies::FindOrder() {
  block_grid_.reset();
  block_ = -1;
  const std::vector<Stmt> loops = BlockLoops();
  if (loops.size() != 1 || loops[0]->loop_kind != LoopKind::kBlockX) return;
  block_ = loops[0]->var;
  std::vector<Linear> starts;
  for (const Tile& tile : tiles_) starts.insert(starts.end(), tile.start.begin(), tile.start.end());
  block_grid_ = FindBlockGrid(starts, block_, loops[0]->extent);
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
  is_streamed_ = false;
  const int32_t wanted = kernel_.hints[ir::Hint::kPersistentBlocks];
  const bool wants_streaming = kernel_.hints[ir::Hint::kStreamK] != 0;
  if (wants_streaming && wanted == 0)
    return InvalidArgument("its sums can't be streamed: its blocks are not persistent");
  if (wanted == 0) return OkStatus();
  if (block_ < 0 || kernel_.cluster > 1)
    return InvalidArgument("its blocks are not numbered by one loop, and can't be persistent");
  if (!wants_streaming && wanted >= kernel_.grid[0]) return OkStatus();
  if (has_pairs_ && wanted % 2 != 0)
    return InvalidArgument("{} persistent blocks are no pairs", wanted);
  if (!std::ranges::all_of(work_, [&](Stmt stmt) { return ReadsBuffersAlone(stmt); }))
    return InvalidArgument("its products read more than buffers of the ring");
  if (wants_streaming) KILN_RETURN_IF_ERROR(CheckStreaming());
  is_streamed_ = wants_streaming;
  buffer_ = scope_.OwnVar("buffer of the ring", depth_);
  persistent_blocks_ = wanted;
  return OkStatus();
}

// Says the loop's variable no more than which buffer is read?
bool CudaBulkCopies::ReadsBuffersAlone(Stmt stmt) const {
  const int32_t var = loop_->var;
  const auto is_of_ring = [&](int32_t slot) {
    return std::ranges::any_of(tiles_, [&](const Tile& tile) { return tile.slot == slot; });
  };
  const auto reads = [&](auto& self, Expr e) -> bool {
    if (!ir::UsesVar(e, var)) return true;
    const bool is_buffer = e->op == Op::kLoad && is_of_ring(e->id);
    const std::span<const Expr> args = e->args();
    if (e->op == Op::kVar) return false;
    return std::ranges::all_of(is_buffer ? args.subspan(1) : args,
                               [&](Expr arg) { return self(self, arg); });
  };
  return std::ranges::all_of(stmt->exprs(), [&](Expr e) { return reads(reads, e); }) &&
         std::ranges::all_of(stmt->children(), [&](Stmt s) { return ReadsBuffersAlone(s); });
}

void CudaBulkCopies::CollectSums(Stmt stmt, std::set<int32_t>& slots) const {
  if (stmt->kind == StmtKind::kStore && instructions::AddedBy(stmt) != nullptr &&
      instructions::UsesMatrixUnits(program_, stmt))
    slots.insert(stmt->slot);
  for (Stmt child : stmt->children()) CollectSums(child, slots);
}

Status CudaBulkCopies::CheckStreaming() {
  const std::string cannot = "its sums can't be streamed: ";
  const int64_t terms = loop_->extent * kernel_.grid[0];
  const int32_t wanted = kernel_.hints[ir::Hint::kPersistentBlocks];
  if (has_pairs_) return InvalidArgument("{}its blocks are pairs", cannot);
  if (terms < wanted || terms > std::numeric_limits<int32_t>::max())
    return InvalidArgument("{}{} terms for {} blocks", cannot, terms, wanted);
  std::set<int32_t> sums;
  for (const Stmt stmt : work_) CollectSums(stmt, sums);
  if (sums.size() != 1 || exprs_.buffer(*sums.begin()).scope != ir::Scope::kLocal)
    return InvalidArgument("{}they are not in registers of one array", cannot);
  sums_ = *sums.begin();
  return OkStatus();
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
    // Halves are alike: each has some panels, the last one whole, or some rows of all panels.
    if (has_groups && (tile.panels % 2 != 0 || tile.last_panel)) {
      tile.half_rows = tile.map.box[1] /= 2;
      if (tile.last_panel) tile.last_panel->box[1] /= 2;
    } else if (tile.panels % 2 == 0) {
      tile.half_panels = tile.panels / 2;
      tile.last_panel.reset();
    } else {
      return InvalidArgument("{} has no halves", exprs_.buffer(tile.slot).name);
    }
  }
  // Blocks share the tiles of the second factors, one for each sum. Rows of the first factor differ.
  if (shared > 0 && shared + 1 == std::ssize(tiles_)) return OkStatus();
  return InvalidArgument(
      "blocks of a column of tiles have {} of {} tiles in common, expected all but one", shared,
      tiles_.size());
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
  KILN_RETURN_IF_ERROR(CheckZeros(copy.store->value(), from.shape, places, scope_, exprs_));

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
  if (tile.has_whole()) KILN_RETURN_IF_ERROR(CheckTensorMap(tile.map));
  KILN_RETURN_IF_ERROR(FindLastPanel(copy, shape.back(), tile));
  return tile;
}

// `row`: elements of a row of the buffer. What is behind those that the copy stores, whole pieces of 16 bytes,
// is padding.
Status CudaBulkCopies::FindLastPanel(const Copy& copy, int64_t row, Tile& of) {
  if (of.pieces) return OkStatus();
  const int64_t piece = kBoxPieceBytes / of.map.element_bytes;
  const arith::Interval range =
      scope_.simplifier().RangeOf(exprs_.IndexOf(copy.store->indices().back()));
  const int64_t used = RoundUp(std::min(range.hi, row - 1) + 1, piece),
                in_last = used - (of.panels - 1) * of.width;
  if (in_last < 1 || in_last == of.width) return OkStatus();
  of.last_panel = of.map;
  of.last_panel->box[0] = in_last;
  return CheckTensorMap(*of.last_panel);
}

// Where a tile starts: no thread and no loop over its elements changes that.
StatusOr<std::vector<Linear>> CudaBulkCopies::StartOf(const Copy& copy, Expr load,
                                                      std::vector<Linear>& places) {
  std::vector<Linear> start;
  for (size_t d = 0; d < load->num_args; ++d) {
    places.push_back(exprs_.IndexOf(load->arg(d)));
    start.push_back(places.back() - exprs_.IndexOf(copy.store->indices()[d + 1]));
    for (const int32_t var : copy.vars) {
      if (!UsesVar(start.back(), var)) continue;
      return InvalidArgument("neighbours of {} are no neighbours in {}",
                             exprs_.buffer(copy.store->slot).name, exprs_.buffer(load->id).name);
    }
    for (const Stmt loop : around_) {
      if (!IsThread(loop->loop_kind) || !UsesVar(start.back(), loop->var)) continue;
      return InvalidArgument("groups of threads have tiles of {} of their own",
                             exprs_.buffer(load->id).name);
    }
  }
  return start;
}

// Of each 2 n rows lie one behind the other 8, the 8 that are n further on, the next 8, and so on
// (swizzle.h). The array is told of as [.., 2 n rows, n / 8 groups, 2 halves, 8 rows, columns].
Status CudaBulkCopies::SplitRows(const Swizzle& swizzle, std::span<const int64_t> shape, Tile& of) {
  const int64_t rows = swizzle.interleaved_rows, of_tile = shape[shape.size() - 2];
  const std::string& name = exprs_.buffer(of.slot).name;
  if (of.map.extents.size() < 2) return InvalidArgument("{} has no rows", name);
  for (size_t d = 2; d < of.map.box.size(); ++d) {
    if (of.map.box[d] != 1) return InvalidArgument("{} has rows of several dimensions", name);
  }
  if (of.map.extents[1] % rows != 0) {
    of.pieces = {.map = of.map, .start = of.start, .rows = of_tile, .group = rows};
    of.pieces->map.box[1] = kGroupRows;
    // Rows of the next matrix would follow the last ones.
    of.pieces->are_all = of.map.extents.size() > 2 || of.map.extents[1] < of_tile;
    KILN_RETURN_IF_ERROR(CheckTensorMap(of.pieces->map));
    if (!of.has_whole()) return OkStatus();
  }
  // Dimensions outside of the rows continue them.
  int64_t all = of.map.extents[1] / rows;
  Linear start = of.start[1];
  for (size_t d = 2, of_rows = 1; d < of.map.extents.size(); ++d) {
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
  of.map.box = {of.map.box[0], kGroupRows, 2, groups, of_tile / rows};
  of.start = {of.start[0], zero, zero, zero, start};
  return OkStatus();
}

std::vector<TensorMap> CudaBulkCopies::maps() const {
  std::vector<TensorMap> maps;
  for (const Tile& tile : tiles_) {
    if (tile.has_whole()) maps.push_back(tile.map);
    if (tile.last_panel) maps.push_back(*tile.last_panel);
    if (tile.pieces) maps.push_back(tile.pieces->map);
  }
  return maps;
}

}  // namespace kiln::codegen
