// The text of a reduction over the threads of a block. Internal to this folder.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/codegen/cuda/blocks.h"
#include "compiler/codegen/cuda/exprs.h"
#include "compiler/codegen/cuda/names.h"
#include "compiler/codegen/cuda/scope.h"
#include "compiler/codegen/cuda/warp_reduce.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// References are kept. One thread.
class WarpShuffles {
 public:
  WarpShuffles(const ir::Kernel& kernel, CudaScope& scope, CudaExprs& exprs, CudaBlocks& blocks,
               CudaNames& names)
      : kernel_(kernel), scope_(scope), exprs_(exprs), blocks_(blocks), names_(names) {}

  // From here on each element of a tree is a variable of the thread; that of thread 0 is the
  // result.
  void Emit(const WarpReduction& reduction);

 private:
  void ExchangeBetweenWarps(const WarpReduction& reduction, int64_t warps);
  void Shuffle(const WarpReduction& reduction, int64_t width);
  void Step(const WarpReduction& reduction, int64_t step, int64_t width);
  std::string FromThread(ir::Stmt store, int64_t step, int64_t width) const;
  const std::string& own(int32_t tree) const { return *exprs_.HeldBufferOrNull(tree); }

  const ir::Kernel& kernel_;
  CudaScope& scope_;
  CudaExprs& exprs_;
  CudaBlocks& blocks_;
  CudaNames& names_;
};

}  // namespace kiln::codegen
