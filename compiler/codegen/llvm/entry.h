// The entry function of a CPU program. Internal: this header includes LLVM.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <span>

#include "compiler/codegen/compiled.h"
#include "compiler/codegen/llvm/number.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// kiln_entry (proto/cpu_abi.h), which calls the kernels in order, and does the fault if there is
// one. Each kernel takes the runtime's context and a pointer to every argument of the program.
void EmitEntry(const ir::Program& program, std::span<llvm::Function* const> kernels, Fault fault,
               llvm::Module& module, llvm::IRBuilder<>& builder, NumberFormats& numbers);

}  // namespace kiln::codegen
