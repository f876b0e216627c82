// The programs of `kiln selftest`: one for every kind of generated device code, and one for every
// instruction shape of the device's matrix units.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "client/check/samples.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/dag/dag.h"
#include "compiler/dag/ops/known_workloads.h"
#include "compiler/target/target.h"

namespace kiln::client {

// One program to be checked on a device.
struct SelfTestProgram {
  // "shared memory above 48 KiB".
  std::string kind;
  dag::KnownWorkload workload;
  // The condition that the CUDA text of this kind meets. Without is_wanted any candidate is fine.
  WantedSample wanted = {};
  // Bytes of shared memory of a block, if the kind needs more than the usual 48 KiB.
  int64_t shared_bytes = 0;
  // True: the program's sums of products are rounded to TF32.
  bool rounds_to_tf32 = false;
};
std::vector<SelfTestProgram> SelfTestPrograms(const target::Target& target);
// Returns the target with the options that the program needs.
target::Target TargetFor(const SelfTestProgram& program, target::Target target);
// Returns steps of the program's kind for a GPU, and any sample for a CPU. `target` is that of
// TargetFor.
StatusOr<std::string> StepsOf(const SelfTestProgram& program, const dag::DagPtr& dag,
                              const target::Target& target, uint64_t seed);

}  // namespace kiln::client
