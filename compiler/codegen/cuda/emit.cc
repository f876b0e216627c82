#include "compiler/codegen/cuda/emit.h"

#include <algorithm>
#include <optional>
#include <set>

#include "compiler/codegen/cuda/buffer_use.h"
#include "compiler/codegen/cuda/instruction_text.h"
#include "compiler/codegen/cuda/types.h"
#include "compiler/instructions/bulk_copy.h"

namespace kiln::codegen {
namespace {
using ir::LoopKind;
using ir::Stmt;
using ir::StmtKind;

bool IsBound(LoopKind kind) { return kind >= LoopKind::kBlockX; }

int CountClusterBarriers(Stmt stmt) {
  int count = stmt->kind == StmtKind::kBarrier && stmt->is_of_cluster ? 1 : 0;
  for (Stmt child : stmt->children()) count += CountClusterBarriers(child);
  return count;
}

// Is the last thing that a thread does, once, a barrier of its cluster?
bool EndsWithClusterBarrier(Stmt stmt) {
  if (stmt->kind == StmtKind::kSeq && stmt->num_children > 0)
    return EndsWithClusterBarrier(stmt->children().back());
  const bool is_once =
      stmt->kind == StmtKind::kFor && (IsBound(stmt->loop_kind) || stmt->extent == 1);
  if (is_once || stmt->kind == StmtKind::kAlloc) return EndsWithClusterBarrier(stmt->body());
  return stmt->kind == StmtKind::kBarrier && stmt->is_of_cluster;
}

// Do four warps together compute a tile in the statement?
bool UsesWarpgroups(const MatrixUnitPlan& units, Stmt stmt) {
  const auto tile = units.tiles.find(stmt);
  if (tile != units.tiles.end()) return tile->second.is_warpgroup;
  return std::ranges::any_of(stmt->children(),
                             [&](Stmt child) { return UsesWarpgroups(units, child); });
}

// Rows of tiles lie in their order until a tile has been emitted that reads them interleaved. So the
// copies of the first time have no quotients of interleaving, and these get no names: with them a
// dense layer in int8 took 11,008 bytes of machine code, 9,600 without.
Swizzles InOrder(Swizzles swizzles) {
  for (auto& [slot, swizzle] : swizzles) swizzle.interleaved_rows = 0;
  return swizzles;
}

// Weights that are held in registers are powers of their scores, and results of an online softmax are
// divided by a total: such a kernel rounds no sums as they are.
SumReading ReadingOf(const MatrixUnitPlan& units, const lower::WarpRegisters& held, Stmt body) {
  if (held.pairs.empty()) return SumReading::kAny;
  std::set<int32_t> sums, weights;
  for (const auto& [stmt, tile] : units.tiles) sums.insert(tile.store->slot);
  for (const auto& [slot, pairs] : held.pairs) weights.insert(slot);
  return RoundsElements(body, sums, weights) ? SumReading::kAny : SumReading::kComputing;
}

std::vector<int64_t> ShapeInBlock(const ir::Buffer& buffer) {
  const bool is_part = buffer.scope == ir::Scope::kCluster;
  return {buffer.shape.begin() + (is_part ? 1 : 0), buffer.shape.end()};
}

// The number of a thread, of so many, where a warp is 8 x 4 of a matrix in this order.
std::string InWarps(const WarpOrder& order, int64_t threads) {
  const int64_t columns = order.columns, rows = order.rows;
  if (rows * 4 == threads) return fmt::format("threadIdx.x % 4 * {} + threadIdx.x / 4", rows);
  if (order.is_by_column()) {
    return fmt::format("threadIdx.x / {0} * {0} + threadIdx.x % 4 * {1} + threadIdx.x / 4 % {1}",
                       4 * rows, rows);
  }
  return fmt::format(
      "(threadIdx.x / {0} * 8 + threadIdx.x % 32 / 4) * {1} + threadIdx.x / 32 % {2} * 4 + "
      "threadIdx.x % 4",
      32 * columns, 4 * columns, columns);
}

// Of floats.
std::string Combined(ir::Op op, std::string_view a, std::string_view b) {
  if (op == ir::Op::kMax) return fmt::format("maximum({}, {})", a, b);
  if (op == ir::Op::kMin) return fmt::format("minimum({}, {})", a, b);
  return fmt::format("{} {} {}", a, op == ir::Op::kAdd ? "+" : "*", b);
}

constexpr int kNoStage = -1, kSeveralStages = -2;

int32_t OnlyStage(Stmt stmt) {
  if (stmt->kind == StmtKind::kStore) return stmt->stage;
  int32_t result = kNoStage;
  for (Stmt child : stmt->children()) {
    const int32_t stage = OnlyStage(child);
    if (stage == kNoStage || stage == result) continue;
    if (result != kNoStage) return kSeveralStages;
    result = stage;
  }
  return result;
}

}  // namespace

CudaEmitter::CudaEmitter(const ir::Program& program, const ir::Kernel& kernel,
                         const MatrixUnitPlan& units, const std::vector<std::string>& buffer_names,
                         CudaScope& scope, CudaNames& names, CudaPreamble& preamble)
    : program_(program),
      kernel_(kernel),
      units_(units),
      names_(names),
      preamble_(preamble),
      scope_(scope),
      swizzles_(InOrder(units.swizzles)),
      held_(lower::FindWarpRegisters(program, kernel)),
      exprs_(program, kernel, buffer_names, swizzles_, scope_, quotients_, preamble),
      blocks_(scope_, quotients_, exprs_, names),
      stores_(scope_, exprs_, blocks_, preamble),
      vectors_(scope_, exprs_, preamble),
      vector_loops_(scope_, exprs_, vectors_, blocks_, stores_, names, preamble),
      shuffles_(kernel, scope_, exprs_, blocks_, names),
      matrix_tiles_(program, swizzles_, scope_, exprs_, blocks_, held_, names, preamble),
      bulk_copies_(program, kernel, swizzles_, scope_, exprs_, blocks_, names, preamble),
      bulk_visits_(program, kernel, swizzles_, scope_, exprs_, blocks_, names, preamble),
      quad_stores_(scope_, exprs_, vectors_, blocks_, names, preamble),
      warp_reductions_(FindWarpReductions(program, kernel)),
      unroll_(
          PlanUnrolling(program, kernel.body, kernel.block[0] * kernel.block[1] * kernel.block[2])),
      uses_warpgroups_(UsesWarpgroups(units, kernel.body)) {
  // Rounded to 16 bits nothing is left of such a weight beside that of the highest score, 1.
  if (!held_.pairs.empty()) exprs_.FlushPowers();
  matrix_tiles_.SetReading(ReadingOf(units, held_, kernel.body));
  if (bulk_visits_.is_used())
    matrix_tiles_.SetWhenRead([this](int32_t slot) { bulk_visits_.EmitRelease(slot); });
  // Statements may be one node: the last one is known by its place.
  if (EndsWithClusterBarrier(kernel.body))
    last_cluster_barrier_ = CountClusterBarriers(kernel.body);
}

// Twice: the first time finds the quotients to name, with rows in their order (InOrder).
StatusOr<std::string> CudaEmitter::EmitBody(const SharedLayout& shared, bool is_dynamic) {
  const CudaNames::Mark names = names_.Here();
  EmitOnce(shared, is_dynamic);
  if (!exprs_.is_exhausted()) {
    names_.ForgetSince(names);
    quotients_.StartNaming();
    exprs_.RefillBudget();
    blocks_.Take();
    EmitOnce(shared, is_dynamic);
  }
  KILN_RETURN_IF_ERROR(refused_);
  for (const Status& status : {bulk_copies_.status(), bulk_visits_.status()}) {
    if (status.ok()) continue;
    return InvalidArgument("bulk copies can't bring the tiles of kernel '{}': {}", kernel_.name,
                           Message(status));
  }
  if (bulk_copies_.is_used() && !warp_reductions_.by_first.empty()) {
    return InvalidArgument("kernel '{}' reduces over threads, and has a warp that copies",
                           kernel_.name);
  }
  if (matrix_tiles_.warp_order().is_changed() && !warp_reductions_.by_first.empty()) {
    return InvalidArgument(
        "kernel '{}' reduces over neighbouring threads, and its matrix units have them in another "
        "order: let warps lie along the rows",
        kernel_.name);
  }
  if (matrix_tiles_.warp_order().is_changed() && has_warp_barriers_) {
    return InvalidArgument(
        "kernel '{}' has barriers of warps, and its matrix units have other threads in a warp: let "
        "warps lie along the rows",
        kernel_.name);
  }
  if (exprs_.is_exhausted()) {
    return ResourceExhausted(
        "the expressions of kernel '{}' have more than {} nodes written out: inline less",
        kernel_.name, CudaExprs::kMaxNodes);
  }
  return blocks_.Take();
}

void CudaEmitter::EmitOnce(const SharedLayout& shared, bool is_dynamic) {
  cluster_barriers_ = 0;
  copies_under_way_ = kNoCopies;
  stage_ = kNoStage;
  EmitShared(shared, is_dynamic);
  EmitWhole(kernel_.body);
  if (bulk_copies_.is_used()) bulk_copies_.EmitEnd();
}

void CudaEmitter::EmitWhole(Stmt stmt) {
  const size_t before = matrix_tiles_.under_way();  // it runs beside these
  Emit(stmt);
  matrix_tiles_.Wait(before);
}

void CudaEmitter::EmitShared(const SharedLayout& shared, bool is_dynamic) {
  for (const auto& [slot, pairs] : held_.pairs) {
    blocks_.Line(fmt::format("unsigned {}[{}];  // pairs of the warp's [{}]",
                             exprs_.buffer_name(slot), pairs.registers,
                             fmt::join(exprs_.buffer(slot).shape, ", ")));
  }
  for (const auto& [slot, rows] : held_.rows)
    blocks_.Line(fmt::format("float {}[{}];", exprs_.buffer_name(slot), rows.registers));
  if (is_dynamic) {
    blocks_.Line(fmt::format("extern __shared__ __align__({}) unsigned char shared_memory[];",
                             shared.alignment));
  }
  for (const SharedBuffer& place : shared.buffers) {
    if (warp_reductions_.IsInRegisters(place.slot)) continue;
    const ir::Buffer& b = exprs_.buffer(place.slot);
    const std::string& name = exprs_.buffer_name(place.slot);
    const std::string type = CudaTypeName(b.type),
                      shape = fmt::format("[{}]", fmt::join(ShapeInBlock(b), ", "));
    if (is_dynamic) {
      blocks_.Line(
          fmt::format("{0}* const {1} = reinterpret_cast<{0}*>(shared_memory + {2});  // {3}", type,
                      name, place.offset, shape));
    } else {
      blocks_.Line(fmt::format("__shared__ __align__({}) {} {}[{}];  // {}", place.alignment, type,
                               name, ElementsInBlock(b), shape));
    }
  }
  if (!bulk_copies_.is_used() && !bulk_visits_.is_used()) return;
  std::string barriers = fmt::format("shared_memory + {}", shared.bulk_barriers);
  if (!is_dynamic) {
    barriers = names_.Unique("tile_barriers");
    blocks_.Line(fmt::format("__shared__ __align__(16) unsigned char {}[{}];", barriers,
                             instructions::kBulkBarrierBytes));
  }
  const auto coordinate = [this](LoopKind kind) { return Coordinate(kind); };
  if (bulk_copies_.is_used()) bulk_copies_.EmitStart(barriers, coordinate);
  if (bulk_visits_.is_used()) bulk_visits_.EmitStart(barriers, coordinate);
}

void CudaEmitter::Emit(Stmt stmt) {
  CommentStage(stmt);
  switch (stmt->kind) {
    case StmtKind::kFor:
      return EmitFor(stmt);
    case StmtKind::kStore:
      return EmitStore(stmt);
    case StmtKind::kIf:
      return EmitIf(stmt);
    case StmtKind::kSeq:
      return EmitSeq(stmt);
    case StmtKind::kAlloc:
      return EmitAlloc(stmt);
    case StmtKind::kBarrier:
      return EmitBarrier(stmt);
    case StmtKind::kCommit:
      return EmitCommit();
    case StmtKind::kInstruction:
      return EmitInstruction(stmt);
  }
}

void CudaEmitter::EmitFor(Stmt loop) {
  if (IsBound(loop->loop_kind)) return EmitBound(loop);
  if (bulk_copies_.IsAhead(loop) || bulk_visits_.IsBrought(loop)) return;
  if (bulk_visits_.IsLoop(loop)) return bulk_visits_.EmitVisits([&] { EmitLoop(loop); });
  if (EmitBulkRing(loop) || EmitHeldPair(loop)) return;
  if (EmitQuadStores(loop)) return;
  // Of a ring of tiles in this loop.
  const bool is_in_ring = matrix_tiles_.is_in_ring();
  EmitLoop(loop);
  if (!is_in_ring) matrix_tiles_.WaitForRing();
}

void CudaEmitter::EmitLoop(Stmt loop) {
  if (loop->extent == 1) return Emit(loop->body());
  if (loop->loop_kind == LoopKind::kVectorized && vector_loops_.Emit(loop)) return;
  if (loop->extent <= 0) return;
  blocks_.Loop(loop->var, loop->extent, CopiesOf(loop), [&] { EmitWhole(loop->body()); });
}

// What is copied, and barriers between threads, the other warp does.
bool CudaEmitter::EmitBulkRing(Stmt loop) {
  if (!bulk_copies_.IsRing(loop)) return false;
  // Products run on while the next ones begin, whose buffer is another one.
  copies_under_way_ = bulk_copies_.depth() - 3;
  bool is_next_under_way = false;
  bulk_copies_.EmitIterations([&] {
    bulk_copies_.EmitArrival();
    const size_t before = matrix_tiles_.under_way();
    for (const Stmt stmt : bulk_copies_.work()) {
      matrix_tiles_.WaitBefore(stmt, before);
      Emit(stmt);
    }
    matrix_tiles_.Wait(before);
    is_next_under_way = matrix_tiles_.is_in_ring();
    bulk_copies_.EmitRelease(is_next_under_way);
  });
  matrix_tiles_.WaitForRing();
  if (is_next_under_way) bulk_copies_.EmitReleaseOfLast();
  bulk_copies_.EmitPartsOfSum();
  copies_under_way_ = kNoCopies;
  return true;
}

// Behind the tiles of matrix units, whose results they are.
bool CudaEmitter::EmitQuadStores(Stmt loop, ir::Expr where) {
  return !IsBound(loop->loop_kind) && has_matrix_tiles_ && threads_.var >= 0 && threads_.is_all &&
         threads_.count % kWarpThreads == 0 && !matrix_tiles_.warp_order().is_by_column() &&
         quad_stores_.Emit(loop, threads_.var, where, [&](Stmt body) { EmitWhole(body); });
}

void CudaEmitter::EmitIf(Stmt condition) {
  if (bulk_copies_.IsAhead(condition) || bulk_visits_.IsBrought(condition)) return;
  const Stmt body = condition->body();
  if (body->kind == StmtKind::kFor && EmitQuadStores(body, condition->condition())) return;
  const ThreadsAround threads = threads_;
  threads_ = threads.In(condition);
  blocks_.Where(condition->condition(), [&] { EmitWhole(condition->body()); });
  threads_ = threads;
}

void CudaEmitter::EmitBound(Stmt loop) {
  const ThreadsAround threads = threads_;
  threads_ = threads.In(loop);
  EmitBoundInside(loop);
  threads_ = threads;
}

void CudaEmitter::EmitBoundInside(Stmt loop) {
  if (loop->extent <= 1) return Emit(loop->body());
  if (bulk_copies_.IsOfPersistentBlocks(loop))
    return bulk_copies_.EmitTiles(loop, [&] { Emit(loop->body()); });
  const std::string definition = fmt::format("const int {} = {};  // 0..{}", scope_.name(loop->var),
                                             Coordinate(loop->loop_kind), loop->extent - 1);
  blocks_.Bound(loop->var, definition, [&] { Emit(loop->body()); });
}

// Blocks of a cluster are neighbours along x.
std::string CudaEmitter::Coordinate(LoopKind kind) const {
  if (kind == LoopKind::kCluster) return fmt::format("blockIdx.x % {}", kernel_.cluster);
  if (kind == LoopKind::kThreadX && matrix_tiles_.warp_order().is_changed())
    return InWarps(matrix_tiles_.warp_order(), kernel_.block[0]);
  if (kind == LoopKind::kBlockX && kernel_.cluster > 1)
    return fmt::format("blockIdx.x / {}", kernel_.cluster);
  if (kind == LoopKind::kBlockX && bulk_copies_.block_grid())
    return OrderedBlock(*bulk_copies_.block_grid(), "blockIdx.x");
  return std::string(ir::LoopKindName(kind));
}

int64_t CudaEmitter::CopiesOf(Stmt loop) const {
  const auto copies = unroll_.copies.find(loop);
  return copies == unroll_.copies.end() ? 0 : copies->second;
}

void CudaEmitter::EmitInstruction(Stmt stmt) {
  const auto tile = units_.tiles.find(stmt);
  if (tile != units_.tiles.end()) return EmitMatrixTile(tile->second);
  const StatusOr<std::string> text = InstructionText(program_, stmt, scope_, exprs_);
  if (!text.ok() && refused_.ok()) refused_ = text.status();
  if (text.ok()) blocks_.Line(*text);
}

void CudaEmitter::EmitMatrixTile(const MatrixTile& tile) {
  has_matrix_tiles_ = true;
  const int32_t first = tile.a.load->id;
  if (tile.rows) swizzles_.at(first) = units_.swizzles.at(first);
  if (bulk_visits_.is_used()) bulk_visits_.EmitArrival(tile.b.load->id);
  matrix_tiles_.Emit(tile, copies_under_way_);
}

void CudaEmitter::EmitStore(Stmt store) {
  if (EmitHeldRow(store)) return;
  stores_.Emit(store);
}

std::string CudaEmitter::RegisterOf(const lower::RegisterNumber& number) {
  arith::Linear sum = arith::Constant(0);
  for (const auto& [var, stride] : number) sum = arith::MultiplyAdd(sum, scope_.value(var), stride);
  return exprs_.PrintSimplified(scope_.simplifier().ToExpr(sum)).text;
}

// Two elements that are stored become one register.
bool CudaEmitter::EmitHeldPair(Stmt loop) {
  const Stmt store = loop->body();
  if (store->kind != StmtKind::kStore) return false;
  const auto pairs = held_.pairs.find(store->slot);
  const lower::HeldPairs::Stored* const held =
      pairs == held_.pairs.end() ? nullptr : pairs->second.StoredBy(store);
  if (held == nullptr) return false;
  CommentStage(store);
  const ir::Expr value = store->value();
  std::string parts;
  for (const int64_t side : {0, 1}) {
    scope_.SetValue(loop->var, arith::Constant(side));
    parts += (side == 0 ? "" : ", ") + exprs_.Print(value->arg(0)).text;
  }
  scope_.ResetValue(loop->var);
  preamble_.packed_types.insert(value->type == ir::kFloat16 ? "f16" : "bf16");
  blocks_.Line(fmt::format("{}[{}] = pack_{}({});", exprs_.buffer_name(store->slot),
                           RegisterOf(held->number), value->type == ir::kFloat16 ? "f16" : "bf16",
                           parts));
  return true;
}

// What one of four threads has of a row; or what all four have of it, combined.
bool CudaEmitter::EmitHeldRow(Stmt store) {
  for (const auto& [slot, held] : held_.rows) {
    for (const lower::HeldRows::Exchange& exchange : held.exchanges) {
      if (EmitExchange(store, exprs_.buffer_name(slot), exchange)) return true;
    }
  }
  return false;
}

bool CudaEmitter::EmitExchange(Stmt store, const std::string& name,
                               const lower::HeldRows::Exchange& rows) {
  if (rows.store == store) {
    blocks_.Line(fmt::format("{}[{}] = {};", name, RegisterOf(rows.stored),
                             exprs_.PrintRaw(store->value()).text));
    return true;
  }
  if (rows.reader != store) return false;
  const std::string value = names_.Unique(name + "_value");
  if (rows.combine == ir::Op::kMax || rows.combine == ir::Op::kMin)
    preamble_.UseExtremes(ir::kFloat32);
  blocks_.Braced("{", [&] {
    blocks_.Line(fmt::format("float {} = {}[{}];", value, name, RegisterOf(rows.read)));
    for (const int step : {1, 2}) {
      const std::string other = fmt::format("__shfl_xor_sync(0xffffffffu, {}, {})", value, step);
      blocks_.Line(fmt::format("{} = {};", value, Combined(rows.combine, value, other)));
    }
    blocks_.Line(fmt::format(
        "{} = {};", exprs_.Element(store->slot, exprs_.PlaceOf(store->slot, store->indices())),
        value));
  });
  return true;
}

void CudaEmitter::EmitSeq(Stmt seq) {
  const std::span<const Stmt> stmts = seq->children();
  const size_t before = matrix_tiles_.under_way();
  for (size_t i = 0; i < stmts.size(); ++i) {
    if (bulk_copies_.IsAhead(stmts[i]) || bulk_visits_.IsBrought(stmts[i])) continue;
    const auto reduction = warp_reductions_.by_first.find(stmts[i]);
    if (reduction == warp_reductions_.by_first.end()) {
      matrix_tiles_.WaitBefore(stmts[i], before);
      Emit(stmts[i]);
    } else {
      matrix_tiles_.Wait(before);
      CommentStage(stmts[i]);
      shuffles_.Emit(reduction->second);
      i += reduction->second.count - 1;
    }
  }
  matrix_tiles_.Wait(before);
}

// Shared memory is laid out at the start of the kernel.
void CudaEmitter::EmitAlloc(Stmt alloc) {
  const ir::Buffer& b = exprs_.buffer(alloc->slot);
  if (b.scope == ir::Scope::kLocal) {
    blocks_.Line(fmt::format("{} {}[{}];  // [{}]", CudaTypeName(b.type),
                             exprs_.buffer_name(alloc->slot), b.num_elements(),
                             fmt::join(b.shape, ", ")));
  }
  Emit(alloc->body());
}

void CudaEmitter::EmitBarrier(Stmt barrier) {
  if (barrier->is_of_cluster) {
    preamble_.cluster = true;
    const bool is_last = ++cluster_barriers_ == last_cluster_barrier_;
    return blocks_.Line(is_last ? "leave_cluster();" : "cluster_barrier();");
  }
  if (barrier->is_of_warp) {
    has_warp_barriers_ = true;
    if (!held_.is_all) blocks_.Line("__syncwarp();");
    return;
  }
  if (bulk_visits_.is_used()) return bulk_visits_.EmitBarrier();
  copies_under_way_ = barrier->pending >= 0 ? barrier->pending : kNoCopies;
  if (barrier->pending >= 0) {
    preamble_.async_copies = true;
    blocks_.Line(fmt::format("wait_for_copies<{}>();", barrier->pending));
  }
  if (uses_warpgroups_) blocks_.Line("fence_async_proxy();");
  blocks_.Line(bulk_copies_.is_used()
                   ? fmt::format("barrier_of_computing<{}>();", bulk_copies_.computing_threads())
                   : "__syncthreads();");
}

void CudaEmitter::EmitCommit() {
  if (bulk_visits_.is_used()) return bulk_visits_.EmitCommit();
  preamble_.async_copies = true;
  blocks_.Line("commit_copies();");
}

void CudaEmitter::CommentStage(Stmt stmt) {
  if (stmt->kind == StmtKind::kBarrier || stmt->kind == StmtKind::kCommit) return;
  const int32_t stage = OnlyStage(stmt);
  if (stage >= 0 && stage != stage_)
    blocks_.Line("// " + program_.stages[static_cast<size_t>(stage)].name);
  stage_ = stage;
}

}  // namespace kiln::codegen
