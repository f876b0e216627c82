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

// Refuses targets that are not llvm, other processor families, and unknown CPU names. The target
// must come from ResolveCpu.
StatusOr<llvm::TargetMachine*> FindMachine(const target::Target& target);

// Tells whether vectors of all sizes have masks, in registers of their own (AVX-512 F and VL).
bool HasMaskedAccess(const llvm::TargetMachine& machine);

// Returns the features with the vector width of the target's -vector-width, if it has one.
CpuFeatures FeaturesOf(llvm::TargetMachine& machine, const target::Target& target);

// Sets layout and triple, and on every function the CPU and the preferred vector width.
void PrepareModule(llvm::TargetMachine& machine, const CpuFeatures& features, llvm::Module& module);

// Turns loads and stores of vectors whose length is no power of two into masked ones of the next
// power, if the machine has masked accesses (AVX-512). LLVM itself would make a chain of smaller
// accesses. Must run late, because masked accesses are not promoted to registers.
void WidenOddVectors(llvm::TargetMachine& machine, llvm::Module& module);

// Returns an object file or assembly text. Consumes the module's code.
StatusOr<std::string> EmitCode(llvm::TargetMachine& machine, llvm::Module& module,
                               llvm::CodeGenFileType type);

}  // namespace kiln::codegen
