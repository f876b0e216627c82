// The analysis of a kernel from which its feature rows are written: loops, stores, and sums over
// them.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "compiler/features/access.h"
#include "compiler/features/op_counts.h"
#include "compiler/ir/program.h"
#include "compiler/lower/warp_registers.h"
#include "compiler/target/target.h"
#include "device/device_model.h"

namespace kiln::features {

// The accesses to one buffer by the stores inside one loop.
struct BufferUse {
  int32_t slot;
  // Number of accesses.
  int count = 0;
  // Number of statements that write.
  int writers = 0;
  double region = 0, bytes = 0;
};

// A loop of the program, with the memory that all stores inside it touch while it runs.
struct LoopFeatures {
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

struct StoreFeatures {
  ir::Stmt store;
  Nest nest;
  absl::InlinedVector<int, 24> loop_ids;
  std::vector<Access> accesses;
  OpCounts ops;
  // Number of loops around the allocation of the buffer.
  int alloc_depth = 0;
  // The share of the store's operations, accesses and loops that costs a thread time. Below 1 if
  // matrix units compute the store.
  double share = 1;
  // Units of four warps read the store's operands from shared memory themselves.
  bool is_of_warpgroup = false;
  double access_share() const { return is_of_warpgroup ? share * kWarpgroupReadShare : share; }
  double work = 1, active_lanes = 1;
  double trips = 1, thread_trips = 1;

  // Returns true if loop d is a reduction, whose iterations combine into the same elements. Each
  // iteration of a loop outside the buffer's allocation has other elements.
  bool IsReduce(int d) const { return d >= alloc_depth && !accesses[0].depends_on(d); }
};

// Sums over the stores of a kernel, for one thread unless the name says otherwise.
struct KernelTotals {
  // Totals of the kernel's statements.
  double registers = 0, shared_bytes = 0, barriers = 0, parallel_tasks = 1;
  // Number of groups.
  double copies_ahead = 0;
  double cluster_barriers = 0;
  // Totals of the rows of the kernel's stores.
  double flops = 0, all_flops = 0, instructions = 0, special = 0;
  double shared_wavefronts = 0, global_requests = 0, sectors = 0, fetches = 0;
  double global_bytes = 0, miss_bytes = 0, remote_bytes = 0;
  // Registers of the store that needs most.
  double operand_registers = 0;
};

struct KernelFeatures {
  KernelFeatures(const ir::Program& p, const ir::Kernel& k, const target::Target& t,
                 const target::HardwareParams& h, const device::DeviceModel& d)
      : program(p), kernel(k), target(t), hardware(h), device(d), gpu(t.is_gpu()) {}

  const ir::Program& program;
  const ir::Kernel& kernel;
  const target::Target& target;
  const target::HardwareParams& hardware;
  const device::DeviceModel& device;
  const bool gpu;
  // In the order in which they begin.
  std::vector<LoopFeatures> loops;
  // In the order of the program.
  std::vector<StoreFeatures> stores;
  KernelTotals totals;
  // Threads of a warp exchange values, as in an online softmax. Code generation unrolls all loops
  // of such a kernel but those with barriers, and keeps the exchanged values in registers.
  bool is_in_warps = false;
  lower::WarpRegisters held = {};

  // Numbers of the launch.
  double Threads() const {
    return static_cast<double>(kernel.block[0] * kernel.block[1] * kernel.block[2]);
  }
  double Blocks() const {
    return static_cast<double>(kernel.grid[0] * kernel.grid[1] * kernel.grid[2] * kernel.cluster);
  }

  const ir::Buffer& BufferOf(const Access& access) const {
    return program.buffers[static_cast<size_t>(access.slot)];
  }
  double ElementBytes(const Access& access) const {
    return static_cast<double>(BufferOf(access).type.bytes());
  }
  ir::Scope ScopeOf(const Access& access) const { return ScopeOf(access.slot); }
  // Returns kLocal for buffers that code generation holds in registers.
  ir::Scope ScopeOf(int32_t slot) const {
    if (held.Holds(slot)) return ir::Scope::kLocal;
    return program.buffers[static_cast<size_t>(slot)].scope;
  }
  bool IsGlobal(const Access& access) const { return ScopeOf(access) < ir::Scope::kShared; }
};

// Returns the iterations of the loops [begin, end) of a nest.
inline double Product(const Nest& nest, int begin, int end) {
  double product = 1;
  for (int d = begin; d < end; ++d) product *= static_cast<double>(nest.loops[d].extent);
  return product;
}

}  // namespace kiln::features
