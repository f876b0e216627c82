// LLVM's target machine: lookup, optimizer, object code, assembly. Internal: this header includes
// LLVM.
//
// Machines are made once per (triple, cpu, features) and kept for the life of the process. Not
// thread-safe.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <string>

#include "base/status.h"
#include "compiler/codegen/llvm/emit.h"
#include "compiler/target/target.h"

namespace kiln::codegen {

// Refuses targets that are not llvm, other processor families, unknown CPU names. The target has
// been through ResolveCpu.
StatusOr<llvm::TargetMachine*> FindMachine(const target::Target& target);

// With the vectors of the target's -vector-width, where it has one.
CpuFeatures FeaturesOf(llvm::TargetMachine& machine, const target::Target& target);

// Layout, triple, and on every function the CPU and the preferred vector width.
void PrepareModule(llvm::TargetMachine& machine, const CpuFeatures& features, llvm::Module& module);

// Loads and stores of vectors whose length is no power of two become masked ones of the next power,
// where the machine has those (AVX-512); LLVM's own way is a chain of smaller accesses. Late,
// because masked accesses are not promoted to registers.
void WidenOddVectors(llvm::TargetMachine& machine, llvm::Module& module);

// Object file or assembly text. Consumes the module's code.
StatusOr<std::string> EmitCode(llvm::TargetMachine& machine, llvm::Module& module,
                               llvm::CodeGenFileType type);

}  // namespace kiln::codegen
