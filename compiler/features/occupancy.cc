#include "compiler/features/occupancy.h"

#include <algorithm>

#include "base/numbers/integers.h"

namespace kiln::features {
namespace {

constexpr int64_t kWarp = 32;
// The most registers that an instruction can name.
constexpr int64_t kMaxRegisters = 255;

}  // namespace

int64_t RegisterLimit(const device::DeviceModel& device, int64_t threads, int64_t min_blocks) {
  const int64_t warps = std::max<int64_t>(1, CeilDiv(threads, kWarp));
  const int64_t most_blocks =
      std::max<int64_t>(1, device.threads_per_multiprocessor / (warps * kWarp));
  const int64_t blocks = std::clamp<int64_t>(min_blocks, 1, most_blocks);
  const int64_t of_block =
      std::min<int64_t>(device.registers_per_multiprocessor / blocks, device.registers_per_block);
  const int64_t limit = of_block / (warps * kWarp) / 8 * 8;
  return std::min(limit, kMaxRegisters);
}

int64_t ResidentBlocks(const device::DeviceModel& device, int64_t threads,
                       int64_t registers_per_thread, int64_t shared_bytes) {
  const int64_t warps = CeilDiv(threads, kWarp);
  const int64_t registers = warps * RoundUp(registers_per_thread * kWarp, 256);
  const int64_t shared = RoundUp(shared_bytes, 128) + device.reserved_shared_bytes_per_block;
  int64_t blocks = std::min<int64_t>(device.blocks_per_multiprocessor,
                                     device.threads_per_multiprocessor / (warps * kWarp));
  blocks = std::min(blocks, device.registers_per_multiprocessor / std::max<int64_t>(1, registers));
  if (shared > 0) blocks = std::min(blocks, device.shared_bytes_per_multiprocessor / shared);
  return std::max<int64_t>(1, blocks);
}

}  // namespace kiln::features
