// Forwards stores to loads and drops overwritten stores within a block. Internal: this header
// includes LLVM.
//
// LLVM's own passes do the same for any code, but look back over some 100 accesses only and take
// quadratic time on the way: an unrolled tile has thousands. Here every access says which buffer it
// belongs to (its alias scope), and buffers never overlap.
#pragma once

#include <llvm/IR/PassManager.h>

namespace kiln::codegen {

// Time is linear in the number of accesses, times a logarithm.
struct BlockMemoryPass : llvm::PassInfoMixin<BlockMemoryPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace kiln::codegen
