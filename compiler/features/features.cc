#include "compiler/features/features.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "compiler/features/access.h"
#include "compiler/features/columns.h"
#include "compiler/features/index_values.h"
#include "compiler/features/occupancy.h"
#include "compiler/features/op_counts.h"

namespace kiln::features {
namespace {

using ir::LoopKind;
using ir::Scope;
using ir::Stmt;
using ir::StmtKind;

constexpr int kGuardSamples = 32;
// Compilers unroll innermost loops of a few iterations by themselves.
constexpr int64_t kCompilerUnroll = 16;
constexpr double kCacheBytes[] = {32 << 10, 1 << 20, 32 << 20};
// Registers of a GPU thread that hold no data of the program: addresses, counters.
constexpr double kOtherRegisters = 24;

// What stores under one loop do to one buffer.
struct BufferUse {
  int32_t slot;
  int count = 0;    // accesses seen
  int writers = 0;  // statements
  double region = 0, bytes = 0;
};

// A loop of the program, with what all stores inside it touch while it runs.
struct LoopRecord {
  EnclosingLoop loop;
  bool has_barrier = false;
  double bytes = 0;
  std::vector<BufferUse> uses;

  BufferUse& UseOf(int32_t slot) {
    for (BufferUse& use : uses) {
      if (use.slot == slot) return use;
    }
    uses.push_back({slot});
    return uses.back();
  }
};

struct StoreRecord {
  Stmt store;
  Nest nest;
  absl::InlinedVector<int, 24> loop_ids;
  std::vector<Access> accesses;
  OpCounts ops;
  int alloc_depth = 0;  // loops around the allocation of the buffer
  double work = 1, active_lanes = 1;
  double trips = 1, thread_trips = 1;
};

// Sums over the stores of a kernel, for one thread unless the name says otherwise.
struct KernelRecord {
  double registers = 0, shared_bytes = 0, barriers = 0, parallel_tasks = 1;
  double flops = 0, all_flops = 0, instructions = 0, special = 0;
  double shared_wavefronts = 0, global_requests = 0, sectors = 0, fetches = 0;
  double global_bytes = 0, miss_bytes = 0;
  double copies_ahead = 0;  // groups
  double cluster_barriers = 0, remote_bytes = 0;
};

double Product(const Nest& nest, int begin, int end) {
  double product = 1;
  for (int d = begin; d < end; ++d) product *= static_cast<double>(nest.loops[d].extent);
  return product;
}

class Extractor {
 public:
  Extractor(const ir::Program& program, const target::Target& target,
            const target::HardwareParams& hardware)
      : program_(program),
        gpu_(target.is_gpu()),
        target_(target),
        hardware_(hardware),
        values_(program),
        alloc_depth_(program.buffers.size(), 0),
        rows_(col::kNumColumns) {}

  FloatMatrix Run() {
    for (size_t k = 0; k < program_.kernels.size(); ++k) {
      kernel_ = &program_.kernels[k];
      totals_ = {};
      stores_.clear();
      loops_.clear();
      FindWriters(kernel_->body);
      next_loop_ = 0;
      Walk(kernel_->body);
      const int first_row = rows_.rows();
      for (StoreRecord& store : stores_) WriteRow(store);
      WriteKernel(static_cast<int>(k), first_row);
    }
    return std::move(rows_);
  }

 private:
  // ---- first pass: loops and what is written in them

  void FindWriters(Stmt s) {
    if (s->kind == StmtKind::kStore) {
      for (int loop : loop_ids_) ++loops_[static_cast<size_t>(loop)].UseOf(s->slot).writers;
      return;
    }
    if (s->kind == StmtKind::kFor) {
      loop_ids_.push_back(static_cast<int>(loops_.size()));
      loops_.emplace_back();
      loops_.back().loop = {s->var, s->extent, s->loop_kind};
    }
    if (s->kind == StmtKind::kBarrier) {
      for (int loop : loop_ids_) loops_[static_cast<size_t>(loop)].has_barrier = true;
    }
    for (Stmt child : s->children()) FindWriters(child);
    if (s->kind == StmtKind::kFor) loop_ids_.pop_back();
  }

  // ---- second pass: stores and what they touch

  void Walk(Stmt s) {
    switch (s->kind) {
      case StmtKind::kFor:
        nest_.loops.push_back({s->var, s->extent, s->loop_kind});
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
        for (Stmt child : s->children()) Walk(child);
        return;
      case StmtKind::kAlloc:
        Allocate(s->slot);
        Walk(s->body());
        return;
      case StmtKind::kBarrier:
        (s->is_of_cluster ? totals_.cluster_barriers : totals_.barriers) += ThreadTrips();
        totals_.copies_ahead = std::max(totals_.copies_ahead, s->pending + 1.0);
        return;
      case StmtKind::kCommit:
        return;
      case StmtKind::kStore:
        AddStore(s);
        return;
    }
  }

  void Allocate(int32_t slot) {
    const ir::Buffer& buffer = program_.buffers[slot];
    alloc_depth_[slot] = nest_.depth();
    const auto bytes = static_cast<double>(buffer.bytes());
    if (buffer.scope == Scope::kShared) totals_.shared_bytes += std::ceil(bytes / 16) * 16;
    if (buffer.scope == Scope::kCluster) {
      totals_.shared_bytes += std::ceil(bytes / static_cast<double>(buffer.shape[0]) / 16) * 16;
    }
    if (buffer.scope == Scope::kLocal) totals_.registers += std::ceil(bytes / 4);
  }

  // Iterations of the loops around this place that one thread runs.
  double ThreadTrips() const {
    double trips = 1;
    for (const EnclosingLoop& loop : nest_.loops) {
      if (!IsBound(loop.kind)) trips *= static_cast<double>(loop.extent);
    }
    return trips;
  }

  void FindBody() {
    const auto kind = [&](int d) {
      // What happens between barriers stays there.
      return loops_[static_cast<size_t>(loop_ids_[d])].has_barrier ? LoopKind::kParallel
                                                                   : nest_.loops[d].kind;
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

  void AddStore(Stmt s) {
    FindBody();
    StoreRecord record;
    record.store = s;
    record.nest = nest_;
    record.loop_ids = loop_ids_;
    record.alloc_depth = alloc_depth_[s->slot];
    record.ops = CountOps(s->value());
    for (ir::Expr index : s->indices()) record.ops.Add(CountOps(index));
    values_.Begin(nest_.loops, kernel_->block, guards_.empty() ? 0 : kGuardSamples);
    const uint32_t active = ApplyGuards(record);
    const auto rewritten_in = [&](int32_t slot) {
      for (int d = nest_.depth(); d-- > 0;) {
        for (const BufferUse& use : loops_[static_cast<size_t>(loop_ids_[d])].uses) {
          if (use.slot == slot && use.writers > (slot == s->slot ? 1 : 0)) return d;
        }
      }
      return -1;
    };
    record.accesses = FindAccesses(program_, s, nest_, gpu_, active, rewritten_in, values_);
    record.trips = Product(nest_, 0, nest_.depth());
    record.thread_trips = ThreadTrips();
    for (int d = 0; d < nest_.depth(); ++d) {
      LoopRecord& loop = loops_[static_cast<size_t>(loop_ids_[d])];
      for (const Access& access : record.accesses) {
        const double bytes = access.region[d] * ElementBytes(access);
        BufferUse& use = loop.UseOf(access.slot);
        use.region = use.count == 0 ? access.region[d] : std::min(use.region, access.region[d]);
        use.bytes += bytes;
        ++use.count;
        loop.bytes += bytes;
      }
    }
    if (!gpu_) {
      double tasks = 1;
      for (const EnclosingLoop& loop : nest_.loops) {
        if (loop.kind == LoopKind::kParallel) tasks *= static_cast<double>(loop.extent);
      }
      totals_.parallel_tasks = std::max(totals_.parallel_tasks, tasks);
    }
    stores_.push_back(std::move(record));
  }

  // The share of iterations that get to the store, and the threads of a warp.
  uint32_t ApplyGuards(StoreRecord& record) {
    const int lanes = values_.num_lanes();
    uint32_t active = lanes == 32 ? ~uint32_t{0} : (uint32_t{1} << lanes) - 1;
    uint32_t samples = ~uint32_t{0};
    for (ir::Expr guard : guards_) {
      const IndexValue value = values_.Of(guard);
      for (int i = 0; i < lanes; ++i) {
        if (value.at[values_.lane(i)] == 0) active &= ~(uint32_t{1} << i);
      }
      for (int i = 0; i < values_.num_samples(); ++i) {
        if (value.at[values_.sample(i)] == 0) samples &= ~(uint32_t{1} << i);
      }
    }
    if (guards_.empty()) return active;
    // Rare is not never.
    record.work = std::max(0.5, static_cast<double>(std::popcount(samples))) / kGuardSamples;
    if (active == 0) active = 1;
    if (lanes > 0) record.active_lanes = static_cast<double>(std::popcount(active)) / lanes;
    return active;
  }

  double ElementBytes(const Access& access) const {
    return static_cast<double>(program_.buffers[access.slot].type.bytes());
  }
  Scope ScopeOf(const Access& access) const { return program_.buffers[access.slot].scope; }
  bool IsGlobal(const Access& access) const {
    const Scope scope = ScopeOf(access);
    return scope < Scope::kShared;
  }

  // ---- third pass: rows

  void Set(int column, double value) { row_[static_cast<size_t>(column)] = Slog(value); }
  void SetRaw(int column, double value) {
    row_[static_cast<size_t>(column)] = static_cast<float>(value);
  }

  void WriteRow(StoreRecord& store) {
    row_ = rows_.AddRow();
    for (size_t i = 0; i < store.ops.of.size(); ++i)
      Set(static_cast<int>(i), store.ops.of[i] * store.trips);
    WriteLoops(store, LoopKind::kVectorized, col::vec_num);
    WriteLoops(store, LoopKind::kUnrolled, col::unroll_num);
    WriteLoops(store, LoopKind::kParallel, col::parallel_num);
    WriteLaunch(store);
    WriteBuffers(store);
    WriteCurve(store);
    WriteNest(store);
    WriteStore(store);
  }

  // 0: inner, 1: middle, 2: outer, + 3 for reduction loops; -1: no such loop, 6: several kinds.
  int PositionOf(const StoreRecord& store, LoopKind kind) const {
    int result = -1;
    for (int reduce = 0; reduce < 2; ++reduce) {
      int total = 0;
      for (int d = 0; d < store.nest.depth(); ++d) total += IsReduce(store, d) == (reduce == 1);
      int index = 0;
      for (int d = 0; d < store.nest.depth(); ++d) {
        if (IsReduce(store, d) != (reduce == 1)) continue;
        ++index;
        if (store.nest.loops[d].kind != kind) continue;
        const int position = 3 * reduce + (index == total ? 0 : index == 1 ? 2 : 1);
        result = result == -1 || result == position ? position : 6;
      }
    }
    return result;
  }

  // Does the loop combine into the same elements? Outside the allocation they are others.
  static bool IsReduce(const StoreRecord& store, int d) {
    return d >= store.alloc_depth && !store.accesses[0].depends_on(d);
  }

  void WriteLoops(const StoreRecord& store, LoopKind kind, int first_column) {
    double count = 0, product = 1, length = 0;
    for (const EnclosingLoop& loop : store.nest.loops) {
      if (loop.kind != kind) continue;
      ++count;
      length = static_cast<double>(loop.extent);
      product *= length;
    }
    if (count > 0) {
      Set(first_column, count);
      Set(first_column + 1, product);
      Set(first_column + 2, length);
    }
    SetRaw(first_column + 3 + 1 + PositionOf(store, kind), 1);
  }

  void WriteLaunch(const StoreRecord& store) {
    if (!gpu_) return;
    SetRaw(col::is_gpu, 1);
    for (int d = 0; d < 3; ++d) {
      const int64_t blocks = kernel_->grid[d] * (d == 0 ? kernel_->cluster : 1);
      Set(col::blockIdx_x_len + d, static_cast<double>(blocks));
      Set(col::threadIdx_x_len + d, static_cast<double>(kernel_->block[d]));
    }
    double vthreads = 1;
    for (const EnclosingLoop& loop : store.nest.loops) {
      if (loop.kind == LoopKind::kVThread) vthreads *= static_cast<double>(loop.extent);
    }
    Set(col::vthread_len, vthreads);
  }

  enum ReuseType { kLoopMultipleRead, kSerialMultipleReadWrite, kNoReuse };
  struct Reuse {
    ReuseType type = kNoReuse;
    double distance_iterations = 0, distance_bytes = 0, count = 0;
  };

  Reuse ReuseOf(const StoreRecord& store, const Access& access) const {
    double iterations = 1, bytes = 0;
    for (const Access& other : store.accesses) bytes += ElementBytes(other);
    for (int d = store.nest.depth(); d-- > 0;) {
      const LoopRecord& loop = loops_[static_cast<size_t>(store.loop_ids[d])];
      const auto extent = static_cast<double>(loop.loop.extent);
      if (!access.depends_on(d)) return {kLoopMultipleRead, iterations, bytes, extent};
      iterations *= extent;
      bytes = loop.bytes;
      for (const BufferUse& use : loop.uses) {
        if (use.slot == access.slot && use.count > 1) {
          return {kSerialMultipleReadWrite, use.region / extent, use.bytes / extent,
                  static_cast<double>(use.count - 1)};
        }
      }
    }
    return {};
  }

  // Cache lines that all iterations touch, one after the other; the stride of the innermost loop.
  double LinesOf(const StoreRecord& store, const Access& access, double& stride) const {
    double ratio = 1;
    stride = 0;
    int d = store.nest.depth();
    while (d-- > 0 && access.strides[d] == 0)
      ratio *= static_cast<double>(store.nest.loops[d].extent);
    if (d == store.nest.depth() - 1 && d >= 0) stride = static_cast<double>(access.strides[d]);
    const double step = d < 0 ? 1 : static_cast<double>(access.strides[d]) * ElementBytes(access);
    const double lines =
        store.trips / ratio * std::min(1.0, step / std::max(1, hardware_.cache_line_bytes));
    return std::max(1.0, lines);
  }

  void WriteBuffers(const StoreRecord& store) {
    struct Slot {
      const Access* access;
      double lines, bytes, stride;
    };
    absl::InlinedVector<Slot, 8> slots;
    for (const Access& access : store.accesses) {
      Slot slot{&access, 0, store.trips * ElementBytes(access), 0};
      slot.lines = LinesOf(store, access, slot.stride);
      slots.push_back(slot);
    }
    std::stable_sort(slots.begin(), slots.end(), [](const Slot& a, const Slot& b) {
      return std::pair(a.lines, a.bytes) > std::pair(b.lines, b.bytes);
    });
    const int count = std::min(kNumSlots, static_cast<int>(slots.size()));
    for (int i = 0; i < count; ++i) {
      WriteBuffer(store, *slots[i].access, slots[i].lines, slots[i].stride,
                  col::kBuffers + i * col::kNumBuffer);
      WriteAccess(*slots[i].access, col::kAccesses + i * col::kNumAccess);
    }
  }

  void WriteBuffer(const StoreRecord& store, const Access& access, double lines, double stride,
                   int at) {
    const double bytes = store.trips * ElementBytes(access);
    const double unique_bytes = access.region[0] * ElementBytes(access);
    const double unique_lines = std::max(1.0, access.line_bytes[0] / 64);
    const Reuse reuse = ReuseOf(store, access);
    const double share = reuse.count > 0.5 ? 1 / reuse.count : 2;
    SetRaw(at + (access.reads ? access.writes ? col::acc_type_kReadWrite : col::acc_type_kRead
                              : col::acc_type_kWrite),
           1);
    Set(at + col::bytes, bytes);
    Set(at + col::unique_bytes, unique_bytes);
    Set(at + col::lines, lines);
    Set(at + col::unique_lines, unique_lines);
    SetRaw(at + col::reuse_type_kLoopMultipleRead + reuse.type, 1);
    Set(at + col::reuse_dis_iter, reuse.distance_iterations);
    Set(at + col::reuse_dis_bytes, reuse.distance_bytes);
    Set(at + col::reuse_ct, reuse.count);
    Set(at + col::bytes_d_reuse_ct, bytes * share);
    Set(at + col::unique_bytes_d_reuse_ct, unique_bytes * share);
    Set(at + col::lines_d_reuse_ct, lines * share);
    Set(at + col::unique_lines_d_reuse_ct, unique_lines * share);
    Set(at + col::stride, stride);
  }

  void WriteAccess(const Access& access, int at) {
    const Scope scope = ScopeOf(access);
    SetRaw(at + (scope < Scope::kShared   ? col::is_global
                 : scope == Scope::kLocal ? col::is_local
                                          : col::is_shared),
           1);
    Set(at + col::accesses, access.accesses);
    Set(at + col::body_elements, access.body_elements);
    Set(at + col::vector_bytes, access.vector_bytes);
    Set(at + col::sectors, access.sectors);
    Set(at + col::wavefronts, access.wavefronts);
    Set(at + col::unrolled_run, access.unrolled_run);
  }

  // Floating-point operations per byte of the touched regions, at ten points between the innermost
  // loop and all of them.
  void WriteCurve(const StoreRecord& store) {
    const int n = store.nest.depth();
    double ops = 0;
    for (int c = col::float_mad; c <= col::float_otherfunc; ++c)
      ops += (c == col::float_mad ? 2 : 1) * store.ops.of[static_cast<size_t>(c)];
    if (n == 0 || ops == 0) return;
    absl::InlinedVector<double, 24> compute(n), ratio(n);
    for (int p = 0; p < n; ++p) {
      const int d = n - 1 - p;
      ops *= static_cast<double>(store.nest.loops[d].extent);
      double bytes = 0;
      for (const Access& access : store.accesses) bytes += access.region[d] * ElementBytes(access);
      compute[p] = ops;
      ratio[p] = ops / bytes;
    }
    int p = 0;
    for (int i = 0; i < kNumCurve; ++i) {
      const double x = compute[n - 1] * (i + 1) / kNumCurve;
      while (p < n - 1 && compute[p] < x - 1e-4) ++p;
      double value = ratio[p];
      if (p > 0 && compute[p] > compute[p - 1]) {
        const double share = (x - compute[p - 1]) / (compute[p] - compute[p - 1]);
        value = ratio[p - 1] + std::min(1.0, share) * (ratio[p] - ratio[p - 1]);
      }
      Set(col::kCurve + i, value);
    }
  }

  void WriteNest(const StoreRecord& store) {
    const ir::Buffer& buffer = program_.buffers[store.store->slot];
    const double outer = Product(store.nest, 0, store.alloc_depth);
    Set(col::alloc_size, static_cast<double>(buffer.bytes()));
    Set(col::alloc_prod, static_cast<double>(buffer.num_elements()) * outer);
    Set(col::alloc_outer_prod, outer);
    Set(col::alloc_inner_prod, store.trips / outer);
    Set(col::outer_prod, store.trips);
    Set(col::num_loops, store.nest.depth());
    Set(col::auto_unroll_max_step,
        program_.stages[static_cast<size_t>(store.store->stage)].auto_unroll_max_step);
  }

  // ---- beyond the facts

  double Threads() const {
    return static_cast<double>(kernel_->block[0] * kernel_->block[1] * kernel_->block[2]);
  }
  double Warps() const { return std::ceil(Threads() / 32) * Blocks(); }
  double Blocks() const {
    return static_cast<double>(kernel_->grid[0] * kernel_->grid[1] * kernel_->grid[2] *
                               kernel_->cluster);
  }

  void WriteStore(StoreRecord& store) {
    const Nest& nest = store.nest;
    const int n = nest.depth();
    const double runs = store.thread_trips * store.work;
    double serial = 1, reduce = 1, chains = 1, lanes = 1, reduce_in_body = 1;
    for (int d = 0; d < n; ++d) {
      const auto extent = static_cast<double>(nest.loops[d].extent);
      if (nest.loops[d].kind == LoopKind::kSerial) serial *= extent;
      if (nest.loops[d].kind == LoopKind::kVectorized) lanes *= extent;
      if (IsReduce(store, d)) {
        reduce *= extent;
        if (d >= nest.first_of_body) reduce_in_body *= extent;
      } else if (d >= nest.first_of_body) {
        chains *= extent;
      }
    }
    // A vectorized loop is one instruction on a CPU.
    const double vector_bytes =
        lanes * static_cast<double>(program_.buffers[store.store->slot].type.bytes());
    const double instruction_lanes =
        gpu_ ? 1
             : std::min(lanes, std::max(1.0, hardware_.vector_unit_bytes * lanes / vector_bytes));
    double register_bytes = 0, stack_trips = 0, accesses = 0;
    for (const Access& access : store.accesses) {
      register_bytes +=
          access.body_elements * ElementBytes(access) / (access.writes ? 1 : reduce_in_body);
      stack_trips += access.stack_trips;
      if (!gpu_ || ScopeOf(access) != Scope::kLocal) accesses += access.accesses;
    }
    accesses *= store.work;
    const double instructions = runs * store.ops.float_instructions() / instruction_lanes +
                                accesses + 2 * serial * store.work;
    Set(col::row_thread_trips, store.thread_trips);
    SetRaw(col::row_work, store.work);
    SetRaw(col::row_active_lanes, store.active_lanes);
    Set(col::row_thread_flops, runs * store.ops.flops());
    Set(col::row_flops, store.trips * store.work * store.ops.flops());
    Set(col::row_thread_instructions, instructions);
    Set(col::row_thread_special, runs * store.ops.special());
    Set(col::row_serial_trips, serial);
    Set(col::row_body, Product(nest, nest.first_unrolled, n));
    Set(col::row_reduce_len, reduce);
    Set(col::row_chains, chains);
    Set(col::row_stack_trips, stack_trips);
    Set(col::row_lanes, lanes);
    SetRaw(col::row_async, store.store->is_async ? 1 : 0);
    const int32_t fragments = program_.stages[static_cast<size_t>(store.store->stage)].fragments;
    SetRaw(col::row_fragments, fragments);
    Set(col::row_vector_bytes, vector_bytes);
    Set(col::row_register_bytes, register_bytes);
    Set(col::row_thread_accesses, accesses);
    if (!gpu_) {
      const double registers = hardware_.vector_unit_bytes >= 64 ? 32 : 16;
      SetRaw(col::row_register_share,
             register_bytes / (registers * std::max(16, hardware_.vector_unit_bytes)));
    }
    double stride = 0;
    for (const Access& access : store.accesses) {
      if (n > 0) stride = std::max(stride, static_cast<double>(access.strides[n - 1]));
    }
    Set(col::row_innermost_stride, stride);
    totals_.flops += runs * store.ops.flops();
    totals_.all_flops += store.trips * store.work * store.ops.flops();
    totals_.instructions += instructions;
    totals_.special += runs * store.ops.special();
    WriteTraffic(store);
    if (gpu_) {
      double operands = 0;
      for (const Access& access : store.accesses) {
        if (!access.writes && ScopeOf(access) != Scope::kLocal)
          operands += access.body_elements * ElementBytes(access) / 4 / reduce_in_body;
      }
      if (fragments > 0) operands *= 2;  // of two steps
      operand_registers_ = std::max(operand_registers_, operands);
    } else {
      WriteMisses(store);
    }
  }

  void WriteTraffic(const StoreRecord& store) {
    double read = 0, written = 0, worst = 0, sectors = 0, reads = 0;
    double worst_wavefronts = 0, wavefronts = 0, shared_reads = 0;
    const bool into_shared = program_.buffers[store.store->slot].scope == Scope::kShared;
    for (const Access& access : store.accesses) {
      const double bytes = access.accesses * store.work * Threads() * Blocks() *
                           (gpu_ ? access.sectors * 32 / 32 : access.vector_bytes);
      if (IsGlobal(access)) {
        (access.writes ? written : read) += bytes;
        totals_.global_requests += access.accesses * store.work;
        totals_.sectors += access.thread_sectors * store.work;
        totals_.global_bytes += bytes;
        if (into_shared) totals_.fetches += access.accesses;
        if (access.reads) {
          worst = std::max(worst, access.sectors);
          sectors += access.thread_sectors;
          reads += access.accesses;
        }
      } else if (ScopeOf(access) == Scope::kCluster && access.reads) {
        totals_.remote_bytes += access.accesses * access.vector_bytes * store.work;
      } else if (ScopeOf(access) != Scope::kLocal) {
        totals_.shared_wavefronts += access.thread_wavefronts * store.work;
        if (access.reads) {
          worst_wavefronts = std::max(worst_wavefronts, access.wavefronts);
          wavefronts += access.thread_wavefronts;
          shared_reads += access.accesses;
        }
      }
    }
    Set(col::row_global_read_bytes, read);
    Set(col::row_global_write_bytes, written);
    Set(col::row_sectors_worst, worst);
    Set(col::row_sectors_mean, reads > 0 ? sectors / reads : 0);
    Set(col::row_wavefronts_worst, worst_wavefronts);
    Set(col::row_wavefronts_mean, shared_reads > 0 ? wavefronts / shared_reads : 0);
  }

  // Bytes that come from beyond a cache: the outermost loops whose data fit are filled once for
  // each iteration of the loops around them. What such a loop does not move stays in the cache.
  double MissBytes(const StoreRecord& store, double cache_bytes) const {
    const int n = store.nest.depth();
    int level = n;
    while (level > 0) {
      double bytes = 0;
      for (const Access& access : store.accesses) bytes += access.line_bytes[level - 1];
      if (bytes > cache_bytes) break;
      --level;
    }
    double missed = 0;
    for (const Access& access : store.accesses) {
      int d = level - 1;
      while (d >= 0 && !access.depends_on(d)) --d;
      // The next loop moves on by parts of a line, or over what it has touched before.
      missed += access.line_bytes[d < 0 ? level : d] * Product(store.nest, 0, std::max(d, 0));
    }
    return missed * store.work;
  }

  void WriteMisses(const StoreRecord& store) {
    for (int c = 0; c < 3; ++c) {
      const double missed = MissBytes(store, kCacheBytes[c]);
      Set(col::row_miss_32k + c, missed);
      if (c == 1) totals_.miss_bytes += missed;
    }
  }

  // What a kernel must move at least, and what of it are workspaces that it writes.
  void FindUniqueBytes(double& all, double& workspaces) const {
    absl::InlinedVector<BufferUse, 8> buffers;
    for (const StoreRecord& store : stores_) {
      for (const Access& access : store.accesses) {
        if (!IsGlobal(access)) continue;
        auto it = std::find_if(buffers.begin(), buffers.end(),
                               [&](const BufferUse& use) { return use.slot == access.slot; });
        if (it == buffers.end()) it = buffers.insert(buffers.end(), {access.slot});
        it->bytes = std::max(it->bytes, access.region[0] * ElementBytes(access));
        if (access.writes && ScopeOf(access) == Scope::kWorkspace) ++it->count;
      }
    }
    for (const BufferUse& use : buffers) {
      all += use.bytes;
      if (use.count > 0) workspaces += use.bytes;
    }
  }

  void WriteKernel(int index, int first_row) {
    if (rows_.rows() == first_row) return;
    const double cores = static_cast<double>(CoresOf(target_, hardware_));
    const double tasks = gpu_ ? Blocks() : totals_.parallel_tasks;
    double resident = 1, occupancy = 0, registers = 0, limit = 0;
    if (gpu_) {
      const Multiprocessor core = MultiprocessorOf(target_);
      const auto threads = static_cast<int64_t>(Threads());
      registers = totals_.registers + operand_registers_ + kOtherRegisters;
      limit = static_cast<double>(RegisterLimit(core, threads, kernel_->min_blocks));
      resident = static_cast<double>(
          ResidentBlocks(core, threads, static_cast<int64_t>(std::min(registers, limit)),
                         static_cast<int64_t>(totals_.shared_bytes)));
      occupancy = std::min(
          1.0, resident * std::ceil(Threads() / 32) * 32 / static_cast<double>(core.threads));
    }
    const double usable_cores =
        gpu_ ? CoresForClusters(CoresOf(target_, hardware_), kernel_->cluster) : cores;
    const double waves = tasks / (usable_cores * resident);
    const double stages = std::ceil(totals_.barriers / 2);
    const double flops = std::max(1.0, totals_.flops);
    double unique_bytes = 0, split_bytes = 0;
    FindUniqueBytes(unique_bytes, split_bytes);
    const double moved = gpu_ ? totals_.global_bytes : totals_.miss_bytes;

    row_ = rows_.row(first_row);
    Set(col::kernel_index, index);
    Set(col::kernel_blocks, gpu_ ? Blocks() : 0);
    Set(col::kernel_threads, gpu_ ? Threads() : 0);
    Set(col::kernel_shared_bytes, totals_.shared_bytes);
    Set(col::kernel_registers, registers);
    Set(col::kernel_register_limit, limit);
    Set(col::kernel_spilled, std::max(0.0, registers - limit));
    Set(col::kernel_blocks_per_core, gpu_ ? resident : 0);
    SetRaw(col::kernel_occupancy, occupancy);
    Set(col::kernel_waves, waves);
    SetRaw(col::kernel_wave_share, waves / std::ceil(waves));
    Set(col::kernel_thread_flops, totals_.flops);
    Set(col::kernel_flops, totals_.all_flops);
    Set(col::kernel_thread_instructions, totals_.instructions);
    Set(col::kernel_thread_special, totals_.special);
    Set(col::kernel_thread_shared_wavefronts, totals_.shared_wavefronts);
    Set(col::kernel_thread_global_requests, totals_.global_requests);
    Set(col::kernel_thread_sectors, totals_.sectors);
    Set(col::kernel_barriers, totals_.barriers);
    Set(col::kernel_copies_ahead, totals_.copies_ahead);
    Set(col::kernel_cluster, static_cast<double>(kernel_->cluster));
    Set(col::kernel_cluster_cores, usable_cores);
    Set(col::kernel_cluster_barriers, totals_.cluster_barriers);
    Set(col::kernel_thread_remote_bytes, totals_.remote_bytes);
    Set(col::kernel_stages, stages);
    Set(col::kernel_stage_loads, stages > 0 ? totals_.fetches / stages : 0);
    Set(col::kernel_unique_bytes, unique_bytes);
    Set(col::kernel_global_bytes, moved);
    Set(col::kernel_split_bytes, split_bytes);
    // One wavefront moves 128 bytes for 32 threads.
    Set(col::kernel_shared_bytes_per_flop, totals_.shared_wavefronts * 4 / flops * 1024);
    Set(col::kernel_global_bytes_per_flop, moved / std::max(1.0, totals_.all_flops) * 1024);
    Set(col::kernel_parallel_tasks, tasks);
    Set(col::program_kernels, static_cast<double>(program_.kernels.size()));
    Set(col::program_cores, cores);
    Set(col::program_vector_bytes, hardware_.vector_unit_bytes);
    for (int r = first_row + 1; r < rows_.rows(); ++r) {
      std::copy(row_.begin() + col::kFirstOfKernel, row_.end(),
                rows_.row(r).begin() + col::kFirstOfKernel);
    }
    operand_registers_ = 0;
  }

  const ir::Program& program_;
  const bool gpu_;
  const target::Target& target_;
  const target::HardwareParams& hardware_;

  // Where the walk is.
  const ir::Kernel* kernel_ = nullptr;
  Nest nest_;
  absl::InlinedVector<int, 24> loop_ids_;  // of the loops around, in the order they begin
  int next_loop_ = 0;
  std::vector<ir::Expr> guards_;
  IndexValues values_;

  std::vector<int> alloc_depth_;  // per buffer
  std::vector<LoopRecord> loops_;
  std::vector<StoreRecord> stores_;
  KernelRecord totals_;
  double operand_registers_ = 0;

  FloatMatrix rows_;
  std::span<float> row_;
};

}  // namespace

FloatMatrix ExtractFeatures(const ir::Program& program, const target::Target& target,
                            const target::HardwareParams& hardware) {
  return Extractor(program, target, hardware).Run();
}

}  // namespace kiln::features
