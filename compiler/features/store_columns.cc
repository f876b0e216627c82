#include "compiler/features/store_columns.h"

#include <algorithm>
#include <cmath>

#include "compiler/ir/matrix_unit_scope.h"

namespace kiln::features {
namespace {

using ir::LoopKind;
using ir::Scope;

constexpr double kCacheBytes[] = {32 << 10, 1 << 20, 32 << 20};
constexpr double kSectorBytes = 32, kWarpThreads = 32;

// Products of loops around a store.
struct Trips {
  double serial = 1, reduce = 1, lanes = 1;
  // For the straight-line code: results that do not wait for each other, and the steps of each.
  double chains = 1, reduce_in_body = 1;
};

Trips TripsOf(const StoreFeatures& store) {
  const Nest& nest = store.nest;
  Trips trips;
  for (int d = 0; d < nest.depth(); ++d) {
    const auto extent = static_cast<double>(nest.loops[d].extent);
    if (nest.loops[d].kind == LoopKind::kSerial) trips.serial *= extent;
    if (nest.loops[d].kind == LoopKind::kVectorized) trips.lanes *= extent;
    if (store.IsReduce(d)) {
      trips.reduce *= extent;
      if (d >= nest.first_of_body) trips.reduce_in_body *= extent;
    } else if (d >= nest.first_of_body) {
      trips.chains *= extent;
    }
  }
  return trips;
}

double InnermostStride(const StoreFeatures& store) {
  const int n = store.nest.depth();
  double stride = 0;
  for (const Access& access : store.accesses) {
    if (n > 0) stride = std::max(stride, static_cast<double>(access.strides[n - 1]));
  }
  return stride;
}

int32_t RegisterBufferingOf(const KernelFeatures& record, const StoreFeatures& store) {
  return record.program.stages[static_cast<size_t>(store.store->stage)]
      .hints[ir::Hint::kRegisterBuffering];
}

// Returns 1 plus the way in which the tiles of a product are copied, for an asynchronous copy. The
// number is higher by 4 in an online softmax by units of four warps. 0 for other stores.
int32_t WayOfCopy(const KernelFeatures& record, const StoreFeatures& store) {
  if (!store.store->is_async) return 0;
  constexpr int32_t kOfOnlineSoftmax = 4;
  int32_t way = 1;
  bool is_of_warpgroups = false;
  for (const ir::ProgramStage& stage : record.program.stages) {
    way = std::max(way, 1 + stage.hints[ir::Hint::kBulkCopies]);
    is_of_warpgroups |= ir::MatrixUnitScopeOf(stage.hints) == ir::MatrixUnitScope::kWarpgroup;
  }
  return record.is_in_warps && is_of_warpgroups ? kOfOnlineSoftmax + way : way;
}

// Returns the bytes of a row of a tile that the copy engine brings as one piece: a swizzled tile
// has parts of 128, 64 or 32 bytes (codegen/cuda/swizzle.h).
double PieceBytes(const ir::Buffer& tile) {
  const int64_t row = tile.shape.back() * tile.type.bytes();
  return row % 128 == 0 ? 128 : row % 64 == 0 ? 64 : row % 32 == 0 ? 32 : 16;
}

void WriteLoops(const KernelFeatures& record, const StoreFeatures& store, const Trips& trips,
                Row row) {
  row.Set(col::row_thread_trips, store.thread_trips);
  row.SetRaw(col::row_work, store.work);
  row.SetRaw(col::row_active_lanes, store.active_lanes);
  row.Set(col::row_serial_trips, trips.serial);
  row.Set(col::row_body, Product(store.nest, store.nest.first_unrolled, store.nest.depth()));
  row.Set(col::row_reduce_len, trips.reduce);
  row.Set(col::row_chains, trips.chains);
  row.Set(col::row_lanes, trips.lanes);
  row.SetRaw(col::row_async, WayOfCopy(record, store));
  row.SetRaw(col::row_register_buffering, RegisterBufferingOf(record, store));
  row.Set(col::row_innermost_stride, InnermostStride(store));
}

// Writes the instructions of a thread, and the amount of their work.
void WriteWork(KernelFeatures& record, const StoreFeatures& store, const Trips& trips,
               double accesses, Row row) {
  const double runs = store.thread_trips * store.work;
  // On a CPU a vectorized loop is one instruction for each register.
  const double vector_bytes =
      trips.lanes *
      static_cast<double>(
          record.program.buffers[static_cast<size_t>(store.store->slot)].type.bytes());
  const double registers = std::ceil(vector_bytes / std::max(1, record.hardware.vector_unit_bytes));
  const double instruction_lanes = record.gpu ? 1 : std::max(1.0, trips.lanes / registers);
  const double flops = runs * store.ops.flops();
  const double all_flops = store.trips * store.work * store.ops.flops();
  const double special = runs * store.ops.special();
  const double instructions = runs * store.ops.float_instructions() / instruction_lanes + accesses +
                              2 * trips.serial * store.work * store.share;
  row.Set(col::row_thread_flops, flops);
  row.Set(col::row_flops, all_flops);
  row.Set(col::row_thread_instructions, instructions);
  row.Set(col::row_thread_special, special);
  row.Set(col::row_vector_bytes,
          WayOfCopy(record, store) > 1 && !record.is_in_warps
              ? PieceBytes(record.program.buffers[static_cast<size_t>(store.store->slot)])
              : vector_bytes);
  row.Set(col::row_thread_accesses, accesses);
  record.totals.flops += flops;
  record.totals.all_flops += all_flops;
  record.totals.instructions += instructions;
  record.totals.special += special;
}

// Writes the registers that the straight-line code needs.
void WriteRegisters(const KernelFeatures& record, const StoreFeatures& store, const Trips& trips,
                    Row row) {
  double bytes = 0, stack_trips = 0;
  for (const Access& access : store.accesses) {
    bytes += access.body_elements * record.ElementBytes(access) /
             (access.writes ? 1 : trips.reduce_in_body);
    stack_trips += access.stack_trips;
  }
  row.Set(col::row_stack_trips, stack_trips);
  row.Set(col::row_register_bytes, bytes);
  if (record.gpu) return;
  const double registers = record.hardware.vector_unit_bytes >= 64 ? 32 : 16;
  row.SetRaw(col::row_register_share,
             bytes / (registers * std::max(16, record.hardware.vector_unit_bytes)));
}

// Returns the instructions of a thread that access memory.
double MemoryAccesses(const KernelFeatures& record, const StoreFeatures& store) {
  double accesses = 0;
  for (const Access& access : store.accesses) {
    if (!record.gpu || record.ScopeOf(access) != Scope::kLocal) accesses += access.accesses;
  }
  return accesses * store.work * store.access_share();
}

// Returns the registers of a GPU thread for values that are read from memory.
double OperandRegisters(const KernelFeatures& record, const StoreFeatures& store,
                        const Trips& trips) {
  // Copies of an online softmax are unrolled, and those of the copy engine are no instructions.
  // Both pass by the registers.
  if (store.is_of_warpgroup || (record.is_in_warps && store.store->is_async) ||
      WayOfCopy(record, store) > 1)
    return 0;
  double operands = 0;
  for (const Access& access : store.accesses) {
    if (!access.writes && record.ScopeOf(access) != Scope::kLocal)
      operands += access.body_elements * record.ElementBytes(access) / 4 / trips.reduce_in_body;
  }
  // Registers hold the operands of two steps.
  if (RegisterBufferingOf(record, store) > 0) operands *= 2;
  return operands;
}

// Writes the traffic to and from memory, and how well a warp's requests fit together.
void WriteTraffic(KernelFeatures& record, const StoreFeatures& store, Row row) {
  KernelTotals& totals = record.totals;
  double read = 0, written = 0, worst = 0, sectors = 0, reads = 0;
  double worst_wavefronts = 0, wavefronts = 0, shared_reads = 0;
  const bool into_shared = record.program.buffers[store.store->slot].scope == Scope::kShared;
  for (const Access& access : store.accesses) {
    // On a GPU a request of a warp moves whole sectors, which its threads share.
    const double request_bytes =
        record.gpu ? access.sectors * kSectorBytes / kWarpThreads : access.vector_bytes;
    const double bytes =
        access.accesses * store.work * record.Threads() * record.Blocks() * request_bytes;
    if (record.IsGlobal(access)) {
      (access.writes ? written : read) += bytes;
      totals.global_requests += access.accesses * store.work;
      totals.sectors += access.thread_sectors * store.work;
      totals.global_bytes += bytes;
      if (into_shared) totals.fetches += access.accesses;
      if (access.reads) {
        worst = std::max(worst, access.sectors);
        sectors += access.thread_sectors;
        reads += access.accesses;
      }
    } else if (record.ScopeOf(access) == Scope::kCluster && access.reads) {
      totals.remote_bytes += access.accesses * access.vector_bytes * store.work;
    } else if (record.ScopeOf(access) != Scope::kLocal) {
      totals.shared_wavefronts += access.thread_wavefronts * store.work * store.access_share();
      if (access.reads) {
        worst_wavefronts = std::max(worst_wavefronts, access.wavefronts);
        wavefronts += access.thread_wavefronts;
        shared_reads += access.accesses;
      }
    }
  }
  row.Set(col::row_global_read_bytes, read);
  row.Set(col::row_global_write_bytes, written);
  row.Set(col::row_sectors_worst, worst);
  row.Set(col::row_sectors_mean, reads > 0 ? sectors / reads : 0);
  row.Set(col::row_wavefronts_worst, worst_wavefronts);
  row.Set(col::row_wavefronts_mean, shared_reads > 0 ? wavefronts / shared_reads : 0);
}

// Returns the bytes that come from beyond a cache. The outermost loops whose data fit are filled
// once for each iteration of the loops around them. Data that do not change with such a loop stay
// in the cache.
double MissBytes(const StoreFeatures& store, double cache_bytes) {
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
    // The next loop moves on by parts of a line, or over elements that it has touched before.
    missed += access.line_bytes[d < 0 ? level : d] * Product(store.nest, 0, std::max(d, 0));
  }
  return missed * store.work;
}

void WriteMisses(KernelFeatures& record, const StoreFeatures& store, Row row) {
  for (int c = 0; c < 3; ++c) {
    const double missed = MissBytes(store, kCacheBytes[c]);
    row.Set(col::row_miss_32k + c, missed);
    if (c == 1) record.totals.miss_bytes += missed;
  }
}

}  // namespace

void WriteStoreColumns(KernelFeatures& record, const StoreFeatures& store, Row row) {
  const Trips trips = TripsOf(store);
  WriteLoops(record, store, trips, row);
  WriteWork(record, store, trips, MemoryAccesses(record, store), row);
  WriteRegisters(record, store, trips, row);
  WriteTraffic(record, store, row);
  if (record.gpu) {
    record.totals.operand_registers =
        std::max(record.totals.operand_registers, OperandRegisters(record, store, trips));
  } else {
    WriteMisses(record, store, row);
  }
}

}  // namespace kiln::features
