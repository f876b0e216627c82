// A target: what to tune for. Text form "llvm -mcpu=znver4 -num-cores=2", "cuda -arch=sm_90",
// "null".
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace kiln::target {

// Names, order and defaults of facts §1.6.
struct HardwareParams {
  int32_t num_cores = 0;
  int32_t vector_unit_bytes = 64;
  int32_t cache_line_bytes = 64;
  int64_t max_shared_memory_per_block_bytes = 0;
  int64_t max_local_memory_per_block_bytes = 0;
  int32_t max_threads_per_block = 0;
  int32_t max_vthread_extent = 0;
  int32_t warp_size = 0;
  bool operator==(const HardwareParams&) const = default;
};

enum class TargetKind : uint8_t { kLlvm, kCuda, kNull };

struct Target {
  TargetKind kind = TargetKind::kLlvm;
  std::map<std::string, std::string> options;  // "mcpu" -> "znver4"
  bool operator==(const Target&) const = default;

  bool is_gpu() const { return kind == TargetKind::kCuda; }
  // "" when not given.
  std::string Option(std::string_view name) const;
  // 90 of -arch=sm_90a; 0: no GPU, or the target does not say.
  int GpuArch() const;
};

std::string_view TargetKindName(TargetKind kind);  // "llvm", "cuda", "null"
// Known options: llvm: mcpu, mattr, num-cores, mtriple; cuda: arch, max_num_threads,
// thread_warp_size, ...; keys, libs, model, device for both (from old logs; kept, not used).
// Unknown target kind or option: error with the list of known ones.
StatusOr<Target> ParseTarget(std::string_view text);
std::string PrintTarget(const Target& target);  // canonical: options sorted

// Hardware parameters of a target as far as the text says; the measured device's own come from its
// runner.
HardwareParams DefaultHardware(const Target& target, int host_cores);

// What the measured device did not say of itself (0) is taken from the target's defaults.
HardwareParams FillHardware(const Target& target, HardwareParams hardware);

}  // namespace kiln::target
