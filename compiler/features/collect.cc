#include "compiler/features/collect.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "compiler/instructions/computed_factor.h"
#include "compiler/ir/traverse.h"

namespace kiln::features {
namespace {

using ir::LoopKind;
using ir::Scope;
using ir::Stmt;
using ir::StmtKind;

// Compilers unroll innermost loops of a few iterations by themselves.
constexpr int64_t kCompilerUnroll = 16;
// The code generator keeps LLVM's loop vectorizer away from loops with more accesses
// (codegen/llvm/optimize.cc).
constexpr double kMaxVectorizedAccesses = 128;

class Collector {
 public:
  Collector(KernelFeatures& record, IndexValues& values)
      : record_(record), program_(record.program), values_(values) {}

  void Run() {
    FindWriters(record_.kernel.body);
    if (record_.is_in_warps) record_.held = lower::FindWarpRegisters(program_, record_.kernel);
    record_.stores.reserve(num_stores_);
    Walk(record_.kernel.body);
  }

 private:
  // ---- first pass: loops, and the buffers that are written in them

  void FindWriters(Stmt s) {
    if (s->kind == StmtKind::kStore) {
      ++num_stores_;
      for (int loop : loop_ids_) ++record_.loops[static_cast<size_t>(loop)].UseOf(s->slot).writers;
      return;
    }
    if (s->kind == StmtKind::kFor) {
      loop_ids_.push_back(static_cast<int>(record_.loops.size()));
      record_.loops.emplace_back();
      record_.loops.back().loop = {s->var, s->extent, s->loop_kind};
    }
    if (s->kind == StmtKind::kBarrier && s->is_of_warp) record_.is_in_warps = true;
    if (s->kind == StmtKind::kBarrier && !s->is_of_warp) {
      for (int loop : loop_ids_) record_.loops[static_cast<size_t>(loop)].has_barrier = true;
    }
    for (Stmt child : s->children()) FindWriters(child);
    if (s->kind == StmtKind::kFor) loop_ids_.pop_back();
  }

  // ---- second pass: stores, and the memory that they touch

  void Walk(Stmt s) {
    switch (s->kind) {
      case StmtKind::kFor:
        nest_.loops.push_back({s->var, s->extent, KindOf(s, record_.loops[next_loop_])});
        loop_ids_.push_back(next_loop_++);
        Walk(s->body());
        nest_.loops.pop_back();
        loop_ids_.pop_back();
        return;
      case StmtKind::kIf:
        guards_.push_back(s->condition());
        Walk(s->body());
        guards_.pop_back();
        return;
      case StmtKind::kSeq:
        WalkSeq(s);
        return;
      case StmtKind::kAlloc:
        Allocate(s->slot);
        Walk(s->body());
        return;
      case StmtKind::kBarrier:
        AddBarrier(s);
        return;
      case StmtKind::kCommit:
        return;
      case StmtKind::kInstruction:
        Walk(s->body());
        return;
      case StmtKind::kStore:
        AddStore(s);
        return;
    }
  }

  LoopKind KindOf(Stmt loop, const LoopFeatures& features) const {
    const bool is_unrolled =
        record_.is_in_warps && loop->loop_kind == LoopKind::kSerial && !features.has_barrier;
    return is_unrolled ? LoopKind::kUnrolled : loop->loop_kind;
  }

  // On a GPU the values of a reduction, as two sums, load what they have in common once.
  void WalkSeq(Stmt s) {
    for (Stmt child : s->children()) {
      Walk(child);
      if (record_.gpu && Accumulates(child)) {
        AddLoads(child);
      } else {
        loaded_.clear();
      }
    }
    loaded_.clear();
  }

  static bool Accumulates(Stmt s) {
    bool reads_own = false;
    if (s->kind != StmtKind::kStore) return false;
    ir::Visit(s->value(), [&](ir::Expr e) {
      reads_own = reads_own || (e->op == ir::Op::kLoad && e->id == s->slot &&
                                std::ranges::equal(e->args(), s->indices()));
    });
    return reads_own;
  }

  void AddLoads(Stmt store) {
    ir::Visit(store->value(), [&](ir::Expr e) {
      if (e->op == ir::Op::kLoad && e->id != store->slot) loaded_.push_back(e);
    });
  }

  // Barriers of warps do not count, because threads of a warp hardly ever wait for each other.
  void AddBarrier(Stmt s) {
    if (s->is_of_warp) return;
    KernelTotals& totals = record_.totals;
    (s->is_of_cluster ? totals.cluster_barriers : totals.barriers) += ThreadTrips();
    totals.copies_ahead = std::max(totals.copies_ahead, s->pending + 1.0);
  }

  void Allocate(int32_t slot) {
    const ir::Buffer& buffer = program_.buffers[slot];
    KernelTotals& totals = record_.totals;
    allocated_.emplace_back(slot, nest_.depth());
    const auto bytes = static_cast<double>(buffer.bytes());
    const Scope scope = record_.ScopeOf(slot);
    if (scope == Scope::kShared) totals.shared_bytes += std::ceil(bytes / 16) * 16;
    if (buffer.scope == Scope::kCluster) {
      totals.shared_bytes += std::ceil(bytes / static_cast<double>(buffer.shape[0]) / 16) * 16;
    }
    if (scope == Scope::kLocal) totals.registers += RegistersOf(slot, bytes);
  }

  // Returns the registers of a thread that hold the buffer.
  double RegistersOf(int32_t slot, double bytes) const {
    if (const auto pairs = record_.held.pairs.find(slot); pairs != record_.held.pairs.end())
      return static_cast<double>(pairs->second.registers);
    if (const auto rows = record_.held.rows.find(slot); rows != record_.held.rows.end())
      return static_cast<double>(rows->second.registers);
    return std::ceil(bytes / 4);
  }

  // Returns the loops around the buffer's allocation. 0: the buffer exists before the kernel.
  int AllocDepth(int32_t slot) const {
    for (size_t i = allocated_.size(); i-- > 0;) {
      if (allocated_[i].first == slot) return allocated_[i].second;
    }
    return 0;
  }

  // Returns the iterations of the loops around the current place that one thread runs.
  double ThreadTrips() const {
    double trips = 1;
    for (const EnclosingLoop& loop : nest_.loops) {
      if (!IsBound(loop.kind)) trips *= static_cast<double>(loop.extent);
    }
    return trips;
  }

  // Finds the loops around the current place that become straight-line code.
  void FindBody() {
    const auto kind = [&](int d) {
      // Statements between barriers stay there, so a loop with a barrier is no part of the body.
      return LoopAround(d).has_barrier ? LoopKind::kParallel : nest_.loops[d].kind;
    };
    const auto unrolled = [](LoopKind k) {
      return k == LoopKind::kUnrolled || k == LoopKind::kVectorized;
    };
    int d = nest_.depth();
    int64_t body = 1;
    while (d > 0 && unrolled(kind(d - 1))) body *= nest_.loops[--d].extent;
    nest_.first_unrolled = d;
    while (d > 0 && (kind(d - 1) == LoopKind::kSerial || unrolled(kind(d - 1)))) {
      body *= nest_.loops[d - 1].extent;
      if (body > kCompilerUnroll) break;
      --d;
    }
    nest_.first_of_body = d;
  }

  // Returns the unit of a store that adds to sums, not of one that initialises them. Null: threads
  // compute the store.
  const instructions::MatrixUnit* MatrixUnitOf(Stmt s) const {
    const ir::Hints& hints = program_.stages[static_cast<size_t>(s->stage)].hints;
    if (!record_.gpu || hints[ir::Hint::kMatrixUnit] == 0) return nullptr;
    const ir::Expr product = instructions::AddedBy(s);
    return product == nullptr ? nullptr : instructions::UnitOf(product);
  }

  void AddStore(Stmt s) {
    FindBody();
    StoreFeatures store;
    store.store = s;
    store.nest = nest_;
    store.loop_ids = loop_ids_;
    store.alloc_depth = AllocDepth(s->slot);
    store.ops = CountOps(s->value());
    for (ir::Expr index : s->indices()) store.ops.Add(CountOps(index));
    if (const instructions::MatrixUnit* const unit = MatrixUnitOf(s)) {
      store.is_of_warpgroup =
          instructions::UsesMatrixUnits(program_, s, ir::MatrixUnitScope::kWarpgroup);
      store.share = ShareOf(*unit) * (store.is_of_warpgroup ? kWarpgroupShare : kWarpShare);
      store.ops = InMatrixUnit(*unit, store.ops, store.share);
    }
    values_.Begin(nest_.loops, record_.kernel.block);
    uint64_t guarding_loops = 0;
    const uint32_t active = ActiveLanes(store, guarding_loops);
    const auto rewritten_in = [&](int32_t slot) { return RewrittenInLoop(slot, s); };
    store.accesses =
        FindAccesses(program_, s, nest_, loaded_, CpuVectorBytes(), active, rewritten_in, values_);
    if (const auto loop = LoopThatLlvmVectorizes(store)) {
      store.nest.loops[static_cast<size_t>(*loop)].kind = LoopKind::kVectorized;
      store.nest.first_unrolled = store.nest.first_of_body = *loop;
      store.accesses = FindAccesses(program_, s, store.nest, {}, CpuVectorBytes(), active,
                                    rewritten_in, values_);
    }
    store.trips = Product(nest_, 0, nest_.depth());
    store.thread_trips = ThreadTrips();
    for (int d = 0; d < nest_.depth(); ++d) AddUses(store, d);
    if (!guards_.empty()) store.work = GuardedShare(guarding_loops);
    if (!record_.gpu)
      record_.totals.parallel_tasks = std::max(record_.totals.parallel_tasks, ParallelTasks());
    record_.stores.push_back(std::move(store));
  }

  // Returns the loop that LLVM vectorizes although the schedule left a CPU's loops scalar: the
  // innermost loop that LLVM does not unroll, if its iterations are independent and store side by
  // side.
  std::optional<int> LoopThatLlvmVectorizes(const StoreFeatures& store) const {
    const int d = nest_.first_of_body - 1;
    if (record_.gpu || d < 0 || store.IsReduce(d) || !guards_.empty()) return std::nullopt;
    for (const EnclosingLoop& loop : nest_.loops) {
      if (loop.kind == LoopKind::kVectorized) return std::nullopt;
    }
    const double body = Product(nest_, nest_.first_of_body, nest_.depth());
    if (body * static_cast<double>(store.accesses.size()) > kMaxVectorizedAccesses)
      return std::nullopt;
    for (const Access& access : store.accesses) {
      const int64_t stride = access.strides[static_cast<size_t>(d)];
      if (access.writes ? stride != 1 : stride > kMaxShuffledStride) return std::nullopt;
    }
    return d;
  }

  int CpuVectorBytes() const {
    return record_.gpu ? 0 : std::max(1, record_.hardware.vector_unit_bytes);
  }

  LoopFeatures& LoopAround(int depth) {
    return record_.loops[static_cast<size_t>(loop_ids_[depth])];
  }

  // Returns the innermost loop around the store in which another statement writes the buffer.
  int RewrittenInLoop(int32_t slot, Stmt store) {
    const bool is_read_anew = record_.is_in_warps && record_.ScopeOf(slot) == Scope::kShared;
    for (int d = nest_.depth(); d-- > 0;) {
      // No value of shared memory stays in a register across a barrier.
      if (is_read_anew && LoopAround(d).has_barrier && !IsBound(nest_.loops[d].kind)) return d;
      for (const BufferUse& use : LoopAround(d).uses) {
        if (use.slot == slot && use.writers > (slot == store->slot ? 1 : 0)) return d;
      }
    }
    return -1;
  }

  // Adds the memory that the store touches while the loop at the depth runs.
  void AddUses(const StoreFeatures& store, int depth) {
    LoopFeatures& loop = LoopAround(depth);
    for (const Access& access : store.accesses) {
      const double region = access.region[depth];
      const double bytes = region * record_.ElementBytes(access);
      BufferUse& use = loop.UseOf(access.slot);
      use.region = use.count == 0 ? region : std::min(use.region, region);
      use.bytes += bytes;
      ++use.count;
      loop.bytes += bytes;
    }
  }

  double ParallelTasks() const {
    double tasks = 1;
    for (const EnclosingLoop& loop : nest_.loops) {
      if (loop.kind == LoopKind::kParallel) tasks *= static_cast<double>(loop.extent);
    }
    return tasks;
  }

  // Returns the threads of a warp that execute the store, where some do. A guard that no thread
  // passes is that of an iteration, as of the last copies ahead of their use: where it lets through
  // any thread, it lets through all. Adds the loops on which the guards depend.
  uint32_t ActiveLanes(StoreFeatures& store, uint64_t& guarding_loops) {
    const int lanes = values_.num_lanes();
    uint32_t active = lanes == 32 ? ~uint32_t{0} : (uint32_t{1} << lanes) - 1;
    for (ir::Expr guard : guards_) {
      const IndexValue value = values_.Of(guard);
      guarding_loops |= value.loops;
      uint32_t passes = 0;
      for (int i = 0; i < lanes; ++i) {
        if (value.at[values_.lane(i)] != 0) passes |= uint32_t{1} << i;
      }
      if ((active & passes) != 0) active &= passes;
    }
    if (guards_.empty()) return active;
    if (active == 0) active = 1;  // on a CPU
    if (lanes > 0) store.active_lanes = static_cast<double>(std::popcount(active)) / lanes;
    return active;
  }

  // Returns the share of iterations that execute the store. A search ranks thousands of programs,
  // and programs whose share is underestimated come first, so the estimate must not be far off for
  // any program.
  double GuardedShare(uint64_t guarding_loops) {
    values_.BeginSamples(guarding_loops);
    const int samples = values_.num_samples();
    std::array<bool, IndexValues::kMaxSamples> runs;
    std::fill_n(runs.begin(), samples, true);
    for (ir::Expr guard : guards_) {
      const int64_t* value = values_.Of(guard).at + values_.sample(0);
      for (int i = 0; i < samples; ++i) runs[static_cast<size_t>(i)] &= value[i] != 0;
    }
    // A store without a hit in the samples is rare, but may still happen.
    const auto hits = static_cast<double>(std::count(runs.begin(), runs.begin() + samples, true));
    return std::max(0.5, hits) / samples;
  }

  KernelFeatures& record_;
  const ir::Program& program_;
  IndexValues& values_;
  size_t num_stores_ = 0;

  // The current place of the walk.
  Nest nest_;
  // Loops around the place, numbered in the order in which they begin.
  absl::InlinedVector<int, 24> loop_ids_;
  int next_loop_ = 0;
  std::vector<ir::Expr> guards_;
  // Loads by the values of a reduction before the store.
  std::vector<ir::Expr> loaded_;
  // Pairs of a buffer and its depth.
  absl::InlinedVector<std::pair<int32_t, int>, 8> allocated_;
};

}  // namespace

void CollectKernel(IndexValues& values, KernelFeatures& record) { Collector(record, values).Run(); }

}  // namespace kiln::features
