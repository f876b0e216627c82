// Turns vectors that are gathered lane by lane from strided elements into loads of neighbours and
// transpositions in registers. Internal: this header includes LLVM.
//
// A vector of B[j, k] over j takes an element of each row. If the loop over k is unrolled, the next
// vector takes the neighbours of these elements. Four such vectors of 16 lanes are 64 scalar loads
// with as many inserts, or 16 loads of four elements and 8 shuffles. The pass reads no bytes that
// were not read before.
#pragma once

#include <llvm/IR/PassManager.h>

namespace kiln::codegen {

// Handles vectors of 32-bit elements whose lanes are a multiple of four, with four neighbours
// within a block. Time is linear in the instructions, except for the vectors of one kind in a
// block, each of which is compared with the first.
struct TransposeLoadsPass : llvm::PassInfoMixin<TransposeLoadsPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace kiln::codegen
