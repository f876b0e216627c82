// A target: what to tune for. Text form "llvm -mcpu=znver4 -num-cores=2", "cuda -arch=sm_90",
// "null".
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/target/target_kind.h"
#include "device/hardware_params.h"

namespace kiln::target {

// Since these CUDA architectures there are copies into shared memory that threads need not wait
// for, and clusters of blocks.
inline constexpr int kFirstArchWithAsyncCopies = 80, kFirstArchWithClusters = 90;

struct Target {
  const TargetKind* kind = &kLlvm;                  // never null
  std::map<std::string, std::string> options = {};  // "mcpu" -> "znver4"
  bool operator==(const Target&) const = default;

  // Are programs grids of blocks of threads, on whosever GPU?
  bool is_gpu() const { return kind->execution == ExecutionModel::kGpu; }
  // "" when not given.
  std::string Option(std::string_view name) const;
  // 90 of -arch=sm_90a; 0: not CUDA, or the target does not say.
  int GpuArch() const;
  bool HasAsyncCopies() const { return GpuArch() >= kFirstArchWithAsyncCopies; }
  bool HasClusters() const { return GpuArch() >= kFirstArchWithClusters; }
};

// Target kinds and their options: target_kind.cc. Unknown ones: error with the list of those that
// are known.
StatusOr<Target> ParseTarget(std::string_view text, TargetKinds kinds = AllTargetKinds());
std::string PrintTarget(const Target& target);  // canonical: options sorted

// Hardware parameters of a target as far as the text says; the measured device's own come from its
// runner.
HardwareParams DefaultHardware(const Target& target, int host_cores);

// What the measured device did not say of itself (0) is taken from the target's defaults.
HardwareParams FillHardware(const Target& target, HardwareParams hardware);

}  // namespace kiln::target
