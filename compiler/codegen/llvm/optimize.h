// LLVM's optimizer, made fit for the candidates of a search: unrolled bodies of thousands of vector
// instructions, of which the fast ones need little optimizing. Internal: this header includes LLVM.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

namespace kiln::codegen {

// LLVM's O3 with our passes among its own, less those that take long for nothing here; then
// WidenOddVectors. Not thread-safe.
void OptimizeModule(llvm::TargetMachine& machine, llvm::Module& module);

}  // namespace kiln::codegen
