// LLVM's optimizer, tuned for the candidates of a search: unrolled bodies of thousands of vector
// instructions, of which the fast ones need little optimizing. Internal: this header includes LLVM.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

namespace kiln::codegen {

// Runs LLVM's O3 with Kiln's passes among its own, without those that take long and achieve nothing
// here, and then WidenOddVectors. Not thread-safe.
void OptimizeModule(llvm::TargetMachine& machine, llvm::Module& module);

}  // namespace kiln::codegen
