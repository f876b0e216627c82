#include "compiler/features/occupancy.h"

#include <algorithm>

namespace kiln::features {
namespace {

constexpr int64_t kWarp = 32;
constexpr int64_t kMostRegisters = 255;  // that an instruction can name
constexpr int64_t kUnknownMultiprocessors = 132;

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

constexpr int kUsualArch = 90;

}  // namespace

Multiprocessor MultiprocessorOf(const target::Target& target) {
  const int arch = target.GpuArch() > 0 ? target.GpuArch() : kUsualArch;
  Multiprocessor core;
  if (arch >= 120) {
    core = {.threads = 1536, .blocks = 24, .shared_bytes = 100 << 10};
  } else if (arch == 86 || arch == 87 || arch == 89) {
    core = {.threads = 1536, .blocks = arch == 89 ? 24 : 16, .shared_bytes = 100 << 10};
    if (arch == 87) core.shared_bytes = 164 << 10;
  } else if (arch == 80) {
    core.shared_bytes = 164 << 10;
  } else if (arch == 75) {
    core = {.threads = 1024, .blocks = 16, .shared_bytes = 64 << 10};
  } else if (arch < 80) {
    core.shared_bytes = 96 << 10;
  }
  if (arch < 80) core.reserved_shared_bytes_per_block = 0;
  return core;
}

int64_t RegisterLimit(const Multiprocessor& core, int64_t threads, int64_t min_blocks) {
  const int64_t warps = std::max<int64_t>(1, (threads + kWarp - 1) / kWarp);
  const int64_t most_blocks = std::max<int64_t>(1, core.threads / (warps * kWarp));
  const int64_t blocks = std::clamp<int64_t>(min_blocks, 1, most_blocks);
  const int64_t limit = core.registers / (blocks * warps * kWarp) / 8 * 8;
  return std::min(limit, kMostRegisters);
}

int64_t ResidentBlocks(const Multiprocessor& core, int64_t threads, int64_t registers_per_thread,
                       int64_t shared_bytes) {
  const int64_t warps = (threads + kWarp - 1) / kWarp;
  const int64_t registers = warps * RoundUp(registers_per_thread * kWarp, 256);
  const int64_t shared = RoundUp(shared_bytes, 128) + core.reserved_shared_bytes_per_block;
  int64_t blocks = std::min(core.blocks, core.threads / (warps * kWarp));
  blocks = std::min(blocks, core.registers / std::max<int64_t>(1, registers));
  if (shared > 0) blocks = std::min(blocks, core.shared_bytes / shared);
  return std::max<int64_t>(1, blocks);
}

// Measured on an H200, 132 multiprocessors: 132, 120, 120 and 112 take blocks of clusters of 2, 4,
// 8 and 16.
double CoresForClusters(int64_t cores, int64_t cluster) {
  const double share = cluster <= 2 ? 1 : cluster <= 8 ? 120.0 / 132 : 112.0 / 132;
  return std::max(1.0, static_cast<double>(cores) * share);
}

int64_t CoresOf(const target::Target& target, const target::HardwareParams& hardware) {
  if (hardware.num_cores > 0) return hardware.num_cores;
  return target.is_gpu() ? kUnknownMultiprocessors : 1;
}

}  // namespace kiln::features
