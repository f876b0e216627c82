// Inline math for float32 scalars and vectors. Internal: this header includes LLVM.
//
// Each function becomes an internal always-inline function of the module, made on first use. The
// code is the same for scalars and vectors of any length, so a result does not depend on how a loop
// was vectorized. Accuracy: docs/codegen.md.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "compiler/ir/expr.h"

namespace kiln::codegen {

// True for exp, exp2, log, log2, tanh, sigmoid and erf.
bool HasInlineMath(ir::Intrinsic intrinsic);

// x is a float or a vector of floats. Returns a call.
llvm::Value* CallInlineMath(llvm::IRBuilderBase& builder, llvm::Module& module,
                            ir::Intrinsic intrinsic, llvm::Value* x);

}  // namespace kiln::codegen
