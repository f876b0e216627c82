// Minimum and maximum of IEEE 754-2019 by the instructions that x86 has. Internal: this header
// includes LLVM.
//
// The instructions of x86 give their second operand where an operand is NaN and where both are
// zeros, so one of them is not enough. LLVM 19 puts blends around it; these take fewer and cheaper
// instructions:
//
//   max(c, x), c a constant     max(c, x) gives x if x is NaN. Where c is +0, -0 stands in for it
//                               and the sign is cleared, so that -0 becomes +0.
//   min(a, b)                   min(a, b) | min(b, a): the two differ where an operand is NaN, and
//                               all bits of a NaN's exponent stay set, and for zeros of two signs,
//                               which become -0.
//   max(a, b)                   max(a, b) & max(b, a), which makes +0 of zeros of two signs, and
//                               all bits where an operand is NaN.
//   max(a, max(b, c)), ...      one instruction for each further value, and for all of them together:
//                               the sign, which is the and of their signs (of minima the or), and
//                               whether one is NaN, by a comparison of each two.
#pragma once

#include <llvm/IR/PassManager.h>

namespace kiln::codegen {

// Replaces llvm.minimum and llvm.maximum of floats, doubles and halves and of vectors of them. Of
// halves it is one of floats: LLVM narrows what is rounded to a half, and its own code for a half
// forgets a NaN. The pass runs when loops are vectorized, which knows the two as what may be
// reordered. It does nothing but on x86.
struct MinimumMaximumPass : llvm::PassInfoMixin<MinimumMaximumPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace kiln::codegen
