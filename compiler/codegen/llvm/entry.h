// The entry function of a CPU program. Internal: this header includes LLVM.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/codegen/compiled.h"
#include "compiler/codegen/llvm/number.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// A kernel takes the runtime's context and a pointer to each argument of the program that it uses.
struct CpuKernel {
  llvm::Function* function = nullptr;
  // Numbers of the program's arguments.
  std::vector<int32_t> args;
};

// Emits kiln_entry (proto/cpu_abi.h), which calls the kernels in order, and executes the fault if
// there is one.
void EmitEntry(const ir::Program& program, std::span<const CpuKernel> kernels, Fault fault,
               llvm::Module& module, llvm::IRBuilder<>& builder, NumberFormats& numbers);

}  // namespace kiln::codegen
