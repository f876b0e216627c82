// Minimum and maximum of IEEE 754-2019 on x86, whose own instructions forget NaN and the sign of
// zeros. LLVM 19 puts blends around each instruction; minimum_maximum_writer.h tells what is
// written here instead. Internal: this header includes LLVM.
#pragma once

#include <llvm/IR/PassManager.h>

namespace kiln::codegen {

// Replaces llvm.minimum and llvm.maximum of floats, doubles and halves and of vectors of them, and
// the reductions of vectors by them. An operation on halves becomes one on floats: LLVM narrows
// operations whose result is rounded to a half, and its own code for a half loses a NaN. The pass
// runs after loops are vectorized, because the vectorizer knows the two as operations that may be
// reordered. It only does something on x86.
struct MinimumMaximumPass : llvm::PassInfoMixin<MinimumMaximumPass> {
  // `has_masks`: the machine has mask registers, for vectors of all sizes (AVX-512 F and VL).
  explicit MinimumMaximumPass(bool has_masks) : has_masks(has_masks) {}

  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

  bool has_masks;
};

}  // namespace kiln::codegen
