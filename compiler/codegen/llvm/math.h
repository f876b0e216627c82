// Inline math for float32 scalars and vectors. Internal: this header includes LLVM.
//
// Each function becomes an internal always-inline function of the module, made on first use, the
// same code for scalars and vectors of any length: a result does not depend on how a loop was
// vectorized. Accuracy: docs/codegen.md.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "compiler/ir/expr.h"

namespace kiln::codegen {

// exp, exp2, log, log2, tanh, sigmoid, erf are there.
bool HasInlineMath(ir::Intrinsic intrinsic);

// x: float or vector of float. Returns a call.
llvm::Value* CallInlineMath(llvm::IRBuilderBase& builder, llvm::Module& module,
                            ir::Intrinsic intrinsic, llvm::Value* x);

}  // namespace kiln::codegen
