#include "compiler/target/registers.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace kiln::target {

int64_t RegistersPerBlock(const Target& target) {
  const std::string text = target.is_gpu() ? target.Option(kRegistersPerBlock) : std::string();
  int64_t registers = 0;
  std::from_chars(text.data(), text.data() + text.size(), registers);
  return registers;
}

int64_t RegistersPerThread(int64_t registers_per_block, int64_t threads) {
  constexpr int64_t kWarp = 32, kUnit = 8;
  const int64_t in_warps = std::max<int64_t>(1, (threads + kWarp - 1) / kWarp) * kWarp;
  return registers_per_block / in_warps / kUnit * kUnit;
}

}  // namespace kiln::target
