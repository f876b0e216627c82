// Checks whether a CPU can run a program, before any code is generated. No LLVM here.
#pragma once

#include "base/status.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// Refuses GPU loop kinds, shared buffers, barriers, launch dimensions, and local buffers that do
// not fit a thread's stack (a quarter of KILN_CPU_STACK_BYTES per kernel), each by name.
// ir::Verify, which the generator calls as well, checks the structure itself (ids, arity).
Status CheckCpuProgram(const ir::Program& program);

}  // namespace kiln::codegen
