// Minimum and maximum of IEEE 754-2019 by the instructions that x86 has. Internal: this header
// includes LLVM.
//
// The instructions of x86 return their second operand if an operand is NaN or if both are zeros, so
// one of them is not enough. LLVM 19 puts blends around the instruction. The forms here take fewer
// and cheaper instructions:
//
//   max(c, x), c a constant     max(c, x) gives x if x is NaN. If c is +0, -0 is used instead of it
//                               and the sign is cleared, so that -0 becomes +0.
//   min(a, b)                   min(a, b) | min(b, a): the two differ if an operand is NaN, and
//                               all bits of a NaN's exponent stay set, and for zeros of two signs,
//                               which become -0.
//   max(a, b)                   max(a, b) & max(b, a), which makes +0 of zeros of two signs, and
//                               all bits if an operand is NaN.
//   max(a, max(b, c)), ...      one instruction for each further value. The rest is done once for
//                               all values: the sign is the and of their signs (the or for minima),
//                               and comparisons of two values each tell if one of them is NaN.
#pragma once

#include <llvm/IR/PassManager.h>

namespace kiln::codegen {

// Replaces llvm.minimum and llvm.maximum of floats, doubles and halves and of vectors of them. An
// operation on halves becomes one on floats: LLVM narrows operations whose result is rounded to a
// half, and its own code for a half loses a NaN. The pass runs after loops are vectorized, because
// the vectorizer knows the two as operations that may be reordered. It only does something on x86.
struct MinimumMaximumPass : llvm::PassInfoMixin<MinimumMaximumPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace kiln::codegen
