// The programs of `kiln selftest`: one of every kind of code that is made for a device.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/dag/dag.h"
#include "compiler/dag/ops/known_workloads.h"
#include "compiler/target/target.h"

namespace kiln::client {

// One program to be checked on a device.
struct SelfTestProgram {
  const char* kind;  // "shared memory above 48 KiB"
  dag::KnownWorkload workload;
  // What the CUDA text must have to be of this kind; null: any candidate is.
  bool (*wanted)(const codegen::CudaSource&) = nullptr;
  int64_t shared_bytes = 0;  // of a block, where the kind needs more than the usual 48 KiB
};
const std::vector<SelfTestProgram>& SelfTestPrograms();
// Of the kind, for a GPU; any sample for a CPU.
StatusOr<std::string> StepsOf(const SelfTestProgram& program, const dag::DagPtr& dag,
                              const target::Target& target, uint64_t seed);

}  // namespace kiln::client
