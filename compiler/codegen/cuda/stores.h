// Stores of a CUDA kernel, one element at a time, and asynchronous copies. Internal to this folder.
#pragma once

#include <string>

#include "compiler/codegen/cuda/blocks.h"
#include "compiler/codegen/cuda/exprs.h"
#include "compiler/codegen/cuda/preamble.h"
#include "compiler/codegen/cuda/scope.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// References are kept. One thread.
class CudaStores {
 public:
  CudaStores(CudaScope& scope, CudaExprs& exprs, CudaBlocks& blocks, CudaPreamble& preamble)
      : scope_(scope), exprs_(exprs), blocks_(blocks), preamble_(preamble) {}

  void Emit(ir::Stmt store);

  // The asynchronous copy of so many elements from where the store's value is loaded. False, and
  // nothing is emitted: the hardware has none of that size, or there is nothing to copy; a plain
  // store does.
  bool EmitCopy(ir::Stmt store, const std::string& to, int lanes);

 private:
  CudaScope& scope_;
  CudaExprs& exprs_;
  CudaBlocks& blocks_;
  CudaPreamble& preamble_;
};

}  // namespace kiln::codegen
