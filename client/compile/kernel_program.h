// Compiles a computation with its schedule into a binary, in the calling process.
#pragma once

#include <string>

#include "base/status.h"
#include "compiler/codegen/compiled.h"
#include "compiler/dag/dag.h"
#include "compiler/target/target.h"

namespace kiln::client {

// `steps` is a JSON array. `hardware` describes the device as far as it is known. Refuses steps
// that do not parse, replay or lower, a program that such a device refuses, and a target without a
// compiler here. Threads: any number at once for GPUs, one at a time for CPUs
// (codegen/llvm/llvm.h). Cost: tenths of a second.
StatusOr<codegen::Compiled> CompileKernel(const dag::DagPtr& dag, const std::string& steps,
                                          const target::Target& target,
                                          const target::HardwareParams& hardware);

}  // namespace kiln::client
