// A computation and its schedule as a binary, in the calling process.
#pragma once

#include <string>

#include "base/status.h"
#include "compiler/codegen/compiled.h"
#include "compiler/dag/dag.h"
#include "compiler/target/target.h"

namespace kiln::client {

// `steps`: a JSON array. `hardware`: of the device, as far as it is known. Refuses steps that do not
// parse, replay or lower, a program that such a device refuses, a target that nothing here compiles
// for. Threads: for GPUs any at once, for CPUs
// one at a time (codegen/llvm/llvm.h). Cost: tenths of a second.
StatusOr<codegen::Compiled> CompileKernel(const dag::DagPtr& dag, const std::string& steps,
                                          const target::Target& target,
                                          const target::HardwareParams& hardware);

}  // namespace kiln::client
