// Forwards stores to loads and drops overwritten stores within a block. Internal: this header
// includes LLVM.
//
// LLVM's own passes do the same for any code, but they look back over only some 100 accesses and
// take quadratic time: an unrolled tile has thousands of accesses. Here the alias scope of every
// access tells its buffer, and buffers never overlap.
#pragma once

#include <llvm/IR/PassManager.h>

namespace kiln::codegen {

// Time is linear in the number of accesses, times a logarithm.
struct BlockMemoryPass : llvm::PassInfoMixin<BlockMemoryPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace kiln::codegen
