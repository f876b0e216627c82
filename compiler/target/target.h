// A target: the platform to tune for. The text form is "llvm -mcpu=znver4 -num-cores=2", "cuda
// -arch=sm_90" or "null".
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/target/target_kind.h"
#include "device/hardware_params.h"

namespace kiln::target {

// The first CUDA architectures that have asynchronous copies into shared memory, and clusters of
// blocks.
inline constexpr int kFirstArchWithAsyncCopies = 80, kFirstArchWithClusters = 90;

struct Target {
  // Never null.
  const TargetKind* kind = &kLlvm;
  // Maps names to values, as "mcpu" to "znver4".
  std::map<std::string, std::string> options = {};
  bool operator==(const Target&) const = default;

  // Returns true if programs are grids of blocks of threads, on a GPU of any maker.
  bool is_gpu() const { return kind->execution == ExecutionModel::kGpu; }
  // Returns "" if the option is not given.
  std::string Option(std::string_view name) const;
  // Returns 90 for -arch=sm_90a. 0: the target is not CUDA or gives no architecture.
  int GpuArch() const;
  bool HasAsyncCopies() const { return GpuArch() >= kFirstArchWithAsyncCopies; }
  bool HasClusters() const { return GpuArch() >= kFirstArchWithClusters; }
};

// Parses a target. target_kind.cc lists the kinds and their options. The error for an unknown one
// lists those that are known.
StatusOr<Target> ParseTarget(std::string_view text, TargetKinds kinds = AllTargetKinds());
// Prints the canonical text, with sorted options.
std::string PrintTarget(const Target& target);

// Returns the hardware parameters of a target as far as its text gives them. The real ones of a
// measured device come from its runner.
HardwareParams DefaultHardware(const Target& target, int host_cores);

// Replaces values that the measured device did not report (0) by the target's defaults.
HardwareParams FillHardware(const Target& target, HardwareParams hardware);

}  // namespace kiln::target
