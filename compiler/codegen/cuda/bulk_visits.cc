#include "compiler/codegen/cuda/bulk_visits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

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
using instructions::kWarpgroupThreads;
using ir::Expr;
using ir::LoopKind;
using ir::Stmt;
using ir::StmtKind;

constexpr int64_t kMostGroups = 3;

// Registers of a thread that copies, and of one that computes, of 65536 for all groups.
struct RegisterShares {
  int copying, computing;
};
RegisterShares SharesOf(int64_t groups) {
  return groups == 2 ? RegisterShares{24, 240} : RegisterShares{32, 160};
}

}  // namespace

CudaBulkVisits::CudaBulkVisits(const ir::Program& program, const ir::Kernel& kernel,
                               const Swizzles& swizzles, CudaScope& scope, CudaExprs& exprs,
                               CudaBlocks& blocks, CudaNames& names, CudaPreamble& preamble)
    : program_(program),
      kernel_(kernel),
      swizzles_(swizzles),
      scope_(scope),
      exprs_(exprs),
      blocks_(blocks),
      names_(names),
      preamble_(preamble) {
  Visits visits = FindVisits(program, kernel);
  loop_ = visits.loop;
  if (loop_ == nullptr) return;
  visit_ = StatementsOf(visits);
  around_ = std::move(visits.around);
  copies_for_itself_ = visits.copying_threads == 0;
  visit_.erase(std::ranges::find(visit_, StmtKind::kCommit, &ir::StmtNode::kind), visit_.end());
  std::erase_if(visit_, [](Stmt stmt) { return !IsCopies(stmt); });
  std::vector<int32_t> vars;
  for (const Stmt stmt : visit_) CollectCopies(stmt, vars);
}

void CudaBulkVisits::CollectCopies(Stmt stmt, std::vector<int32_t>& vars) {
  if (stmt->kind == StmtKind::kStore) copies_.push_back({stmt, vars});
  if (stmt->kind == StmtKind::kFor) vars.push_back(stmt->var);
  for (Stmt child : stmt->children()) CollectCopies(child, vars);
  if (stmt->kind == StmtKind::kFor) vars.pop_back();
}

bool CudaBulkVisits::IsBrought(Stmt stmt) const {
  if (!is_used()) return false;
  if (stmt->kind == StmtKind::kStore) {
    return std::ranges::any_of(copies_,
                               [&](const Copy& copy) { return copy.store->slot == stmt->slot; });
  }
  return stmt->num_children > 0 &&
         std::ranges::all_of(stmt->children(), [&](Stmt child) { return IsBrought(child); });
}

// ---- the tiles

Status CudaBulkVisits::FindTiles() {
  tiles_.clear();
  const int64_t threads = kernel_.block[0];
  if (kernel_.block[1] != 1 || kernel_.block[2] != 1 || threads % kWarpgroupThreads != 0 ||
      groups() > kMostGroups) {
    return InvalidArgument("its {} threads are not one to {} groups of four warps", threads,
                           kMostGroups);
  }
  if (shares_registers() && kernel_.hints[ir::Hint::kMinBlocks] > 1) {
    return InvalidArgument("a block takes all registers, and {} are to fit",
                           kernel_.hints[ir::Hint::kMinBlocks]);
  }
  const auto depth_of = [&](const Copy& copy) {
    const std::vector<int64_t>& shape = exprs_.buffer(copy.store->slot).shape;
    return shape.size() == 3 ? shape[0] : 1;
  };
  constexpr int64_t kMostDepth = instructions::kMaxBulkBuffers / 2;
  depth_ = copies_.empty() ? 1 : depth_of(copies_[0]);
  if (depth_ > kMostDepth)
    return InvalidArgument("a ring has {} buffers, at most {} can be", depth_, kMostDepth);
  scope_.SetValue(loop_->var, scope_.simplifier().Var(iteration_) - arith::Constant(depth_));
  for (const Copy& copy : copies_) {
    KILN_ASSIGN_OR_RETURN(Tile tile, FindTile(copy));
    if (TileOf(tile.slot) != nullptr)
      return InvalidArgument("{} is copied in several parts", exprs_.buffer(tile.slot).name);
    tiles_.push_back(std::move(tile));
  }
  if (tiles_.size() != 2)
    return InvalidArgument("{} tiles are copied asynchronously, expected keys and values",
                           tiles_.size());
  return OkStatus();
}

StatusOr<CudaBulkVisits::Tile> CudaBulkVisits::FindTile(const Copy& copy) {
  const int32_t slot = copy.store->slot;
  const Expr load = ir::CopiedLoad(copy.store->value());
  const ir::Buffer& into = exprs_.buffer(slot);
  if (load == nullptr) return InvalidArgument("{} is no copy", into.name);
  const ir::Buffer& from = exprs_.buffer(load->id);
  const auto swizzle = swizzles_.find(slot);
  if (swizzle == swizzles_.end()) return InvalidArgument("{} is not swizzled", into.name);
  if (into.shape.size() != 3 || into.shape[0] != depth_)
    return InvalidArgument("{} has no ring of buffers", into.name);
  Tile tile;
  tile.slot = slot;
  tile.map.arg = static_cast<uint32_t>(load->id);
  tile.map.element_bytes = static_cast<uint32_t>(into.type.bytes());
  if (swizzle->second.bytes >= kLeastSwizzleBytes)
    tile.map.swizzle_bytes = static_cast<uint32_t>(swizzle->second.bytes);
  tile.width = swizzle->second.width;
  tile.panels = into.shape.back() / tile.width;
  tile.panel = swizzle->second.panel;
  tile.buffer = into.shape[1] * tile.width;
  if (tile.buffer * into.type.bytes() % kBoxAlignment != 0) {
    return InvalidArgument("the tiles of {} have {} bytes, no multiple of {}", into.name,
                           tile.buffer * into.type.bytes(), kBoxAlignment);
  }
  std::vector<Linear> places;
  KILN_RETURN_IF_ERROR(FindStart(copy, load, places, tile));
  KILN_RETURN_IF_ERROR(CheckZeros(copy.store->value(), from.shape, places, scope_, exprs_));
  KILN_RETURN_IF_ERROR(CheckTensorMap(tile.map));
  return tile;
}

// A row of the tile lies along the last dimension of the array, and its rows along another one.
Status CudaBulkVisits::FindStart(const Copy& copy, Expr load, std::vector<Linear>& places,
                                 Tile& of) {
  const ir::Buffer &from = exprs_.buffer(load->id), &into = exprs_.buffer(of.slot);
  const Linear outer = exprs_.IndexOf(copy.store->indices()[1]),
               inner = exprs_.IndexOf(copy.store->indices()[2]),
               iteration = scope_.simplifier().Var(iteration_);
  const auto is_free = [&](const Linear& form) {
    const auto uses = [&](int32_t var) { return UsesVar(form, var); };
    return std::ranges::none_of(copy.vars, uses) && std::ranges::none_of(around_, [&](Stmt loop) {
             return IsThread(loop->loop_kind) && uses(loop->var);
           });
  };
  for (size_t d = 0; d < load->num_args; ++d) places.push_back(exprs_.IndexOf(load->arg(d)));
  const auto refuse = [&] {
    return InvalidArgument("neighbours of {} are no neighbours in {}", into.name, from.name);
  };
  int64_t stride = of.map.element_bytes, moving = 0;
  bool has_rows = false;
  for (size_t d = load->num_args; d-- > 0;) {
    const bool is_last = d + 1 == load->num_args;
    int64_t extent = 1;
    Linear start = places[d];
    if (is_last) {
      start = start - inner;
      extent = into.shape.back();
    } else if (!is_free(start)) {
      if (has_rows) return refuse();
      has_rows = true;
      start = start - outer;
      extent = into.shape[1];
    }
    if (!is_free(start)) return refuse();
    const int64_t step = start.Coefficient(iteration.terms[0].atom);
    if (UsesVar(start - iteration * step, iteration_)) return refuse();
    if (step != 0) {
      of.behind = -start.constant / extent;
      if (++moving > 1 || step != extent || start.constant % extent != 0 || of.behind < 0 ||
          of.behind > 1)
        return InvalidArgument("the tiles of {} do not follow each other", into.name);
    }
    of.map.extents.push_back(from.shape[d]);
    if (!is_last) of.map.strides.push_back(stride);
    of.map.box.push_back(is_last ? of.width : extent);
    of.start.push_back(std::move(start));
    stride *= from.shape[d];
  }
  if (moving == 0) return InvalidArgument("{} has the same tile each time", into.name);
  return OkStatus();
}

size_t CudaBulkVisits::NumberOf(int32_t slot) const {
  return static_cast<size_t>(std::ranges::find(tiles_, slot, &Tile::slot) - tiles_.begin());
}

const CudaBulkVisits::Tile* CudaBulkVisits::TileOf(int32_t slot) const {
  const size_t number = NumberOf(slot);
  return number == tiles_.size() ? nullptr : &tiles_[number];
}

std::vector<std::string> CudaBulkVisits::map_names() const {
  std::vector<std::string> all;
  for (const Tile& tile : tiles_) all.push_back(tile.map_name);
  return all;
}

std::vector<TensorMap> CudaBulkVisits::maps() const {
  std::vector<TensorMap> all;
  for (const Tile& tile : tiles_) all.push_back(tile.map);
  return all;
}

// ---- text

std::vector<Stmt> CudaBulkVisits::BlockLoops() const {
  std::vector<Stmt> loops;
  for (const Stmt loop : around_) {
    if (loop->extent > 1 && loop->loop_kind >= LoopKind::kBlockX && !IsThread(loop->loop_kind))
      loops.push_back(loop);
  }
  return loops;
}

void CudaBulkVisits::EmitStart(std::string_view barriers,
                               const std::function<std::string(LoopKind)>& coordinate) {
  has_begun_ = false;
  // The keys of the first tile come at 0, the values of the last one behind all keys.
  iteration_ = scope_.OwnVar("tile that is brought", loop_->extent + 2);
  scope_.SetName(iteration_, names_.Unique(scope_.name(loop_->var)));
  status_ = FindTiles();
  if (status_.ok()) {
    EmitBarriers(barriers);
    EmitCopyingThread(coordinate);
    if (shares_registers()) {
      blocks_.Line(fmt::format("take_registers<{}>();", SharesOf(groups()).computing));
      blocks_.Line(fmt::format("begin_turns<{}>();", groups()));
    }
    for (const Tile& tile : tiles_) blocks_.Line(fmt::format("unsigned {} = 0;", tile.taken));
  }
  scope_.ResetValue(loop_->var);
}

void CudaBulkVisits::EmitBarriers(std::string_view barriers) {
  preamble_.bulk_copies = preamble_.bulk_visits = true;
  filled_ = names_.Unique("filled");
  emptied_ = names_.Unique("emptied");
  const int64_t threads = kernel_.block[0], count = std::ssize(tiles_) * depth_;
  for (Tile& tile : tiles_) {
    tile.map_name = names_.Unique(exprs_.buffer_name(tile.slot) + "_map");
    tile.taken = names_.Unique(exprs_.buffer_name(tile.slot) + "_taken");
  }
  blocks_.Line(fmt::format(
      "unsigned long long* const {} = reinterpret_cast<unsigned long long*>({});  // [{}]", filled_,
      barriers, count));
  blocks_.Line(fmt::format("unsigned long long* const {} = {} + {};", emptied_, filled_, count));
  blocks_.Braced(fmt::format("if (threadIdx.x == {}) {{", first_copying()), [&] {
    blocks_.Line(fmt::format("start_barriers<{}, {}>({}, {});", count, threads / kWarpThreads,
                             filled_, emptied_));
  });
  blocks_.Line("__syncthreads();");
}

void CudaBulkVisits::EmitInBlock(const std::function<std::string(LoopKind)>& coordinate,
                                 const std::function<void()>& body) {
  const std::vector<Stmt> loops = BlockLoops();
  const auto inside = [&](auto& self, size_t i) -> void {
    if (i == loops.size()) return body();
    const int32_t var = loops[i]->var;
    blocks_.Bound(
        var, fmt::format("const int {} = {};", scope_.name(var), coordinate(loops[i]->loop_kind)),
        [&] { self(self, i + 1); });
  };
  blocks_.Braced(fmt::format("if (threadIdx.x == {}) {{", first_copying()),
                 [&] { inside(inside, 0); });
}

void CudaBulkVisits::EmitCopyingThread(const std::function<std::string(LoopKind)>& coordinate) {
  if (copies_for_itself_) return EmitInBlock(coordinate, [&] { EmitCopiesOf(depth_); });
  blocks_.Braced(fmt::format("if (threadIdx.x >= {}) {{  // copies", first_copying()), [&] {
    if (shares_registers())
      blocks_.Line(fmt::format("give_registers<{}>();", SharesOf(groups()).copying));
    EmitInBlock(coordinate, [&] { EmitCopiesOf(loop_->extent + 2); });
    blocks_.Line("return;");
  });
}

void CudaBulkVisits::EmitCopiesOf(int64_t iterations) {
  blocks_.Loop(iteration_, iterations, 1, [&] {
    for (const Stmt stmt : visit_) EmitCopies(stmt);
  });
}

// The buffers are those whose products the visit before has waited for.
void CudaBulkVisits::EmitNextCopies() {
  const Linear next = scope_.value(loop_->var) + arith::Constant(depth_);
  const std::string definition =
      fmt::format("const int {} = {};", scope_.name(iteration_),
                  exprs_.PrintSimplified(scope_.simplifier().ToExpr(next)).text);
  scope_.SetValue(loop_->var, scope_.simplifier().Var(iteration_) - arith::Constant(depth_));
  blocks_.Braced(fmt::format("if (threadIdx.x == {}) {{", first_copying()), [&] {
    blocks_.Bound(iteration_, definition, [&] {
      for (const Stmt stmt : visit_) EmitCopies(stmt);
    });
  });
  scope_.ResetValue(loop_->var);
}

// Does the condition say which threads copy?
bool CudaBulkVisits::IsOfThreads(Stmt stmt) const {
  return std::ranges::any_of(around_, [&](Stmt loop) {
    return IsThread(loop->loop_kind) &&
           std::ranges::any_of(stmt->exprs(), [&](Expr e) { return ir::UsesVar(e, loop->var); });
  });
}

void CudaBulkVisits::EmitCopies(Stmt stmt) {
  if (stmt->kind == StmtKind::kSeq) {
    for (const Stmt child : stmt->children()) EmitCopies(child);
    return;
  }
  if (stmt->kind == StmtKind::kIf && !IsOfThreads(stmt))
    return blocks_.Where(stmt->condition(), [&] { EmitCopies(stmt->body()); });
  // The statement is all of a tile.
  Stmt store = stmt;
  while (store->kind != StmtKind::kStore && store->num_children > 0) store = store->children()[0];
  const Tile* const tile = store->kind == StmtKind::kStore ? TileOf(store->slot) : nullptr;
  if (tile == nullptr) return;
  if (tile->behind == 0) return EmitTile(*tile);
  blocks_.Braced(fmt::format("if ({} > 0) {{", scope_.name(iteration_)), [&] { EmitTile(*tile); });
}

std::string CudaBulkVisits::BarrierOf(const std::string& barriers, const Tile& tile,
                                      const std::string& number) const {
  const int64_t first = static_cast<int64_t>(NumberOf(tile.slot)) * depth_;
  return fmt::format("&{}[{}{} % {}]", barriers, first == 0 ? "" : fmt::format("{} + ", first),
                     number, depth_);
}

void CudaBulkVisits::EmitTile(const Tile& tile) {
  const std::string& iteration = scope_.name(iteration_);
  std::string number = iteration;
  if (tile.behind > 0) {
    number = names_.Unique("tile");
    blocks_.Line(fmt::format("const int {} = {} - {};", number, iteration, tile.behind));
  }
  const std::string filled = BarrierOf(filled_, tile, number);
  blocks_.Line(fmt::format("if ({0} >= {1}) wait_for({2}, ({0} / {1} + 1) % 2);", number, depth_,
                           BarrierOf(emptied_, tile, number)));
  blocks_.Line(fmt::format("expect_bytes({}, {});", filled, BoxBytes(tile.map) * tile.panels));
  for (int64_t p = 0; p < tile.panels; ++p) {
    std::vector<std::string> texts;
    for (size_t d = 0; d < tile.start.size(); ++d) {
      const Linear at = d == 0 ? tile.start[d] + arith::Constant(p * tile.width) : tile.start[d];
      texts.push_back(exprs_.PrintSimplified(scope_.simplifier().ToExpr(at)).text);
    }
    blocks_.Line(fmt::format("copy_box(&{}[{} % {} * {} + {}], &{}, {}, {});",
                             exprs_.buffer_name(tile.slot), number, depth_, tile.buffer,
                             p * tile.panel, tile.map_name, filled, fmt::join(texts, ", ")));
  }
}

// The first barrier is that of the queries.
void CudaBulkVisits::EmitBarrier() {
  if (is_inside_) {
    if (groups() > 1) blocks_.Line(fmt::format("wait_for_turn<{}>();", groups()));
    return;
  }
  if (has_begun_) return;
  has_begun_ = true;
  preamble_.async_copies = true;
  blocks_.Line("wait_for_copies<0>();");
  blocks_.Line("fence_async_proxy();");
  blocks_.Line(fmt::format("barrier_of_computing<{}>();", kernel_.block[0]));
}

void CudaBulkVisits::EmitCommit() {
  if (is_inside_ && groups() > 1) blocks_.Line(fmt::format("pass_turn<{}>();", groups()));
  if (is_inside_ && copies_for_itself_) EmitNextCopies();
  if (is_inside_ || has_begun_) return;
  preamble_.async_copies = true;
  blocks_.Line("commit_copies();");
}

void CudaBulkVisits::EmitArrival(int32_t slot) {
  const Tile* const tile = TileOf(slot);
  if (tile == nullptr) return;
  blocks_.Line(fmt::format("wait_for({}, {} / {} % 2);", BarrierOf(filled_, *tile, tile->taken),
                           tile->taken, depth_));
}

void CudaBulkVisits::EmitRelease(int32_t slot) {
  const Tile* const tile = TileOf(slot);
  if (tile == nullptr) return;
  blocks_.Line(fmt::format("if (threadIdx.x % 32 == 0) release({});",
                           BarrierOf(emptied_, *tile, tile->taken)));
  blocks_.Line(fmt::format("++{};", tile->taken));
}

}  // namespace kiln::codegen
