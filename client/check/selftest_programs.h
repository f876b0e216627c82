// The programs of `kiln selftest`: one of every kind of code that is made for a device, and one of
// every instruction shape of its matrix units.
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
  std::string kind;  // "shared memory above 48 KiB"
  dag::KnownWorkload workload;
  // What the CUDA text must have to be of this kind. Without is_wanted any candidate is.
  WantedSample wanted = {};
  int64_t shared_bytes = 0;     // of a block, where the kind needs more than the usual 48 KiB
  bool rounds_to_tf32 = false;  // its sums of products
};
std::vector<SelfTestProgram> SelfTestPrograms(const target::Target& target);
// The target with what the program needs besides.
target::Target TargetFor(const SelfTestProgram& program, target::Target target);
// Of the kind, for a GPU; any sample for a CPU. `target`: that for the program.
StatusOr<std::string> StepsOf(const SelfTestProgram& program, const dag::DagPtr& dag,
                              const target::Target& target, uint64_t seed);

}  // namespace kiln::client
