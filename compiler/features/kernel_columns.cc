#include "compiler/features/kernel_columns.h"

#include <algorithm>
#include <cmath>

#include "absl/container/inlined_vector.h"
#include "compiler/features/occupancy.h"
#include "compiler/instructions/bulk_copy.h"
#include "compiler/instructions/matrix_unit.h"

namespace kiln::features {
namespace {

using ir::Scope;

// Registers of a GPU thread that hold no data of the program: addresses, counters. A thread of an
// online softmax takes more of them.
constexpr double kOtherRegisters = 24, kMoreOfOnlineSoftmax = 16;

// The least bytes that a kernel must move, and its part of workspaces that the kernel writes.
struct UniqueBytes {
  double all = 0, workspaces = 0;
};

UniqueBytes FindUniqueBytes(const KernelFeatures& record) {
  absl::InlinedVector<BufferUse, 8> buffers;
  for (const StoreFeatures& store : record.stores) {
    for (const Access& access : store.accesses) {
      if (!record.IsGlobal(access)) continue;
      auto it = std::find_if(buffers.begin(), buffers.end(),
                             [&](const BufferUse& use) { return use.slot == access.slot; });
      if (it == buffers.end()) it = buffers.insert(buffers.end(), {access.slot});
      it->bytes = std::max(it->bytes, access.region[0] * record.ElementBytes(access));
      if (access.writes && record.ScopeOf(access) == Scope::kWorkspace) ++it->count;
    }
  }
  UniqueBytes unique;
  for (const BufferUse& use : buffers) {
    unique.all += use.bytes;
    if (use.count > 0) unique.workspaces += use.bytes;
  }
  return unique;
}

// Registers of a thread that computes, if several groups of four warps take those of the threads
// that copy for them, by the number of groups (codegen/cuda/bulk_visits.h). Such a block has a
// multiprocessor to itself.
constexpr double kOfTwoGroups = 240, kOfMoreGroups = 160;

bool HasBulkCopies(const ir::Program& program) {
  return std::ranges::any_of(program.stages, [](const ir::ProgramStage& stage) {
    return stage.hints[ir::Hint::kBulkCopies] != 0;
  });
}

// The part of a GPU's multiprocessor that a kernel takes. On a CPU a core runs one task.
struct Residency {
  double blocks = 1, occupancy = 0, registers = 0, register_limit = 0;
};

Residency ResidencyOf(const KernelFeatures& record) {
  Residency result;
  if (!record.gpu) return result;
  const device::DeviceModel& core = record.device;
  const bool is_fed = record.is_in_warps && HasBulkCopies(record.program);
  const double groups = record.Threads() / instructions::kWarpgroupThreads;
  // A warp copies for a single group, but long tiles, of which the registers are known better.
  const bool copies_for_itself =
      is_fed && groups <= 1 && !record.held.pairs.empty() &&
      record.held.pairs.begin()->second.registers * instructions::kKeysOfPair >=
          instructions::kKeysOfOwnCopies;
  const auto threads = static_cast<int64_t>(record.Threads()) +
                       (is_fed && !copies_for_itself ? instructions::kCopyingThreads : 0);
  result.registers = record.totals.registers + record.totals.operand_registers + kOtherRegisters +
                     (record.is_in_warps ? kMoreOfOnlineSoftmax : 0);
  if (copies_for_itself) result.registers -= kMoreOfOnlineSoftmax;
  result.register_limit =
      static_cast<double>(RegisterLimit(core, threads, record.kernel.hints[ir::Hint::kMinBlocks]));
  result.blocks = static_cast<double>(ResidentBlocks(
      core, threads, static_cast<int64_t>(std::min(result.registers, result.register_limit)),
      static_cast<int64_t>(record.totals.shared_bytes)));
  if (is_fed && groups > 1) {
    result.registers -= kMoreOfOnlineSoftmax;
    result.register_limit = groups > 2 ? kOfMoreGroups : kOfTwoGroups;
    result.blocks = 1;
  }
  result.occupancy = std::min(1.0, result.blocks * std::ceil(record.Threads() / 32) * 32 /
                                       static_cast<double>(core.threads_per_multiprocessor));
  return result;
}

// Writes the columns that tell how the kernel fills the device.
void WriteLaunch(const KernelFeatures& record, Row row) {
  const int64_t cores =
      std::max(1, record.gpu ? record.device.multiprocessors : record.hardware.num_cores);
  const double usable_cores =
      record.gpu ? device::MultiprocessorsForClusters(record.device, record.kernel.cluster)
                 : static_cast<double>(cores);
  const double tasks = record.gpu ? record.Blocks() : record.totals.parallel_tasks;
  const Residency residency = ResidencyOf(record);
  const double waves = tasks / (usable_cores * residency.blocks);
  const int32_t persistent = record.kernel.hints[ir::Hint::kPersistentBlocks];
  const bool is_streamed = persistent > 0 && record.kernel.hints[ir::Hint::kStreamK] != 0;
  const double launched = is_streamed      ? persistent
                          : persistent > 0 ? std::min<double>(persistent, record.Blocks())
                                           : record.Blocks();
  row.Set(col::kernel_blocks, record.gpu ? launched : 0);
  row.Set(col::kernel_threads, record.gpu ? record.Threads() : 0);
  row.Set(col::kernel_shared_bytes, record.totals.shared_bytes);
  row.Set(col::kernel_registers, residency.registers);
  row.Set(col::kernel_register_limit, residency.register_limit);
  row.Set(col::kernel_spilled, std::max(0.0, residency.registers - residency.register_limit));
  row.Set(col::kernel_blocks_per_core, record.gpu ? residency.blocks : 0);
  row.SetRaw(col::kernel_occupancy, residency.occupancy);
  row.Set(col::kernel_waves, waves);
  // Streamed sums give each block the same amount of work.
  row.SetRaw(col::kernel_wave_share, is_streamed ? 1 : waves / std::ceil(waves));
  row.Set(col::kernel_cluster, static_cast<double>(record.kernel.cluster));
  row.Set(col::kernel_cluster_cores, usable_cores);
  row.Set(col::kernel_parallel_tasks, tasks);
  row.Set(col::program_cores, static_cast<double>(cores));
}

// Writes the columns of one thread.
void WriteThread(const KernelTotals& totals, Row row) {
  const double stages = std::ceil(totals.barriers / 2);
  row.Set(col::kernel_thread_flops, totals.flops);
  row.Set(col::kernel_flops, totals.all_flops);
  row.Set(col::kernel_thread_instructions, totals.instructions);
  row.Set(col::kernel_thread_special, totals.special);
  row.Set(col::kernel_thread_shared_wavefronts, totals.shared_wavefronts);
  row.Set(col::kernel_thread_global_requests, totals.global_requests);
  row.Set(col::kernel_thread_sectors, totals.sectors);
  row.Set(col::kernel_barriers, totals.barriers);
  row.Set(col::kernel_copies_ahead, totals.copies_ahead);
  row.Set(col::kernel_cluster_barriers, totals.cluster_barriers);
  row.Set(col::kernel_thread_remote_bytes, totals.remote_bytes);
  row.Set(col::kernel_stages, stages);
  row.Set(col::kernel_stage_loads, stages > 0 ? totals.fetches / stages : 0);
}

// Writes the columns of transfers.
void WriteBytes(const KernelFeatures& record, Row row) {
  const KernelTotals& totals = record.totals;
  const UniqueBytes unique = FindUniqueBytes(record);
  const double moved = record.gpu ? totals.global_bytes : totals.miss_bytes;
  const double flops = std::max(1.0, totals.flops);
  row.Set(col::kernel_unique_bytes, unique.all);
  row.Set(col::kernel_global_bytes, moved);
  row.Set(col::kernel_split_bytes, unique.workspaces);
  // One wavefront moves 128 bytes for 32 threads.
  row.Set(col::kernel_shared_bytes_per_flop, totals.shared_wavefronts * 4 / flops * 1024);
  row.Set(col::kernel_global_bytes_per_flop, moved / std::max(1.0, totals.all_flops) * 1024);
}

}  // namespace

void WriteKernelColumns(const KernelFeatures& record, int index, Row row) {
  row.Set(col::kernel_index, index);
  WriteLaunch(record, row);
  WriteThread(record.totals, row);
  WriteBytes(record, row);
  row.Set(col::program_kernels, static_cast<double>(record.program.kernels.size()));
  row.Set(col::program_vector_bytes, record.hardware.vector_unit_bytes);
}

}  // namespace kiln::features
