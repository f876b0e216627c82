// Vectorized loops of a CUDA kernel. Internal to this folder.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/codegen/cuda/blocks.h"
#include "compiler/codegen/cuda/stores.h"
#include "compiler/codegen/cuda/vectors.h"

namespace kiln::codegen {

// A vectorized loop over a store, over several into buffers that it does not read, or over the values
// of a reduction in registers becomes vector loads and stores, in a loop over the vectors where there
// are several. What is computed of them is computed lane by lane, in registers. A loop that runs past the end of a tensor takes the lanes of
// its last vector one by one.
//
// References are kept. One thread.
class CudaVectorLoops {
 public:
  CudaVectorLoops(CudaScope& scope, CudaExprs& exprs, CudaVectors& vectors, CudaBlocks& blocks,
                  CudaStores& stores, CudaNames& names, CudaPreamble& preamble)
      : scope_(scope),
        exprs_(exprs),
        vectors_(vectors),
        blocks_(blocks),
        stores_(stores),
        names_(names),
        preamble_(preamble) {}

  // False, and nothing is emitted: there are no vectors in it, it must be a loop.
  bool Emit(ir::Stmt loop);

 private:
  void EmitBody(ir::Stmt body, const Vector& vector);
  void EmitLimited(ir::Stmt body, const Vector& vector);
  // What several of them read they load once.
  void EmitStores(std::span<const ir::Stmt> stores, const Vector& vector);
  // Emits all stores of a lane before those of the next one.
  void EmitInTurn(std::span<const ir::Stmt> stores, const Vector& vector);
  void EmitStore(ir::Stmt store, const Vector& vector);
  void LoadVectors(ir::Stmt store, const Vector& vector);
  void ComputeLanes(ir::Stmt store, const Place& to, const Vector& vector);
  void EmitLanes(ir::Stmt store, const Vector& vector);
  void EmitLane(ir::Stmt body);
  void SetLane(const Vector& vector, int lane);

  CudaScope& scope_;
  CudaExprs& exprs_;
  CudaVectors& vectors_;
  CudaBlocks& blocks_;
  CudaStores& stores_;
  CudaNames& names_;
  CudaPreamble& preamble_;
  std::vector<std::pair<ir::Expr, std::string>> loaded_;  // vector values, by the vector's name
};

}  // namespace kiln::codegen
