// A target: what to tune for. Text form "llvm -mcpu=znver4 -num-cores=2", "cuda -arch=sm_90",
// "null".
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/hardware_params.h"
#include "base/status.h"

namespace kiln::target {

using kiln::HardwareParams;

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
