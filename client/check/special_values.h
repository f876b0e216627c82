// kiln conformance --set special-values: every operator with NaN, infinities, -0 and denormals at the
// first, a middle and the last element of each input, by random candidates on this machine's device,
// compared with the oracle (compiler/dag/special_inputs.h says how).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "compiler/dag/ops/known_workloads.h"

namespace kiln::client {

struct SpecialValueFlags {
  std::string target = "cuda";  // or llvm
  std::string only;             // workloads whose description has this
  uint64_t seed = 1;
  int candidates = 2;  // of each workload
};

// At least one for each operator of the library, large enough for several warps and odd at the ends.
std::span<const dag::KnownWorkload> SpecialValueWorkloads();

// A line per workload, last the totals. The exit status: 1 when an output differs, or a candidate
// could not be run. FailedPrecondition: there is no such device.
StatusOr<int> CheckSpecialValues(const SpecialValueFlags& flags, bool json);

}  // namespace kiln::client
