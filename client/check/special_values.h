// kiln conformance --set special-values runs every operator with NaN, infinities, -0 and denormals
// at the first, a middle and the last element of each input. Random candidates run on this
// machine's device, and their outputs are compared with the oracle (see
// compiler/dag/special_inputs.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "compiler/dag/ops/known_workloads.h"

namespace kiln::client {

struct SpecialValueFlags {
  // "cuda" or "llvm".
  std::string target = "cuda";
  // Selects the workloads whose description contains this text.
  std::string only;
  uint64_t seed = 1;
  // Candidates of each workload.
  int candidates = 2;
};

// Returns at least one workload for each operator of the library. They are large enough for several
// warps, and their extents leave odd remainders.
std::span<const dag::KnownWorkload> SpecialValueWorkloads();

// Prints a line per workload, and the totals at the end. Returns the exit status: 1 if an output
// differs, or a candidate could not be run. FailedPrecondition: there is no such device.
StatusOr<int> CheckSpecialValues(const SpecialValueFlags& flags, bool json);

}  // namespace kiln::client
