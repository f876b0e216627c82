// Vectors that are gathered lane by lane from strided elements become loads of neighbours and
// transpositions in registers. Internal: this header includes LLVM.
//
// A vector of B[j, k] over j takes an element of each row; unrolled over k, the next vector takes
// the neighbours of these. Four such vectors of 16 lanes are 64 scalar loads with as many inserts,
// or 16 loads of four elements and 8 shuffles. Nothing is read that was not read before.
#pragma once

#include <llvm/IR/PassManager.h>

namespace kiln::codegen {

// Vectors of 32-bit elements, lanes a multiple of four, four neighbours within a block. Time is
// linear in the instructions, but for the vectors of one kind in a block, which are compared with
// the first.
struct TransposeLoadsPass : llvm::PassInfoMixin<TransposeLoadsPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace kiln::codegen
