// The body of one CUDA kernel. Internal to this folder.
//
//   scope.h         the variables: names, ranges, values
//   quotients.h     quotients that get a name
//   exprs.h         expressions and elements
//   blocks.h        lines, loops, conditions
//   stores.h        stores of an element, copies
//   vectors.h       which accesses are vectors
//   vector_loops.h  vectorized loops
//   instruction_text.h  instructions of a thread that a pass has placed
//   warp_reduce.h   reductions over threads; warp_shuffles.h their text
//   matrix_tile_text.h  those of matrix units; matrix_warpgroup.h those of sm_90
//   swizzle.h       how what they read lies in shared memory
//   quad_stores.h   results of 16 or 8 bits, stored 16 bytes at once
//   bulk_copies.h   tiles that the copy engine of sm_90 brings; bulk_visits.h those of keys and values
//   unroll.h        which loops are unrolled
//
// This is what is left: which statement becomes what.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/codegen/cuda/blocks.h"
#include "compiler/codegen/cuda/bulk_copies.h"
#include "compiler/codegen/cuda/bulk_visits.h"
#include "compiler/codegen/cuda/exprs.h"
#include "compiler/codegen/cuda/matrix_tile.h"
#include "compiler/codegen/cuda/matrix_tile_text.h"
#include "compiler/codegen/cuda/names.h"
#include "compiler/codegen/cuda/place_matrix_units.h"
#include "compiler/codegen/cuda/preamble.h"
#include "compiler/codegen/cuda/quad_stores.h"
#include "compiler/codegen/cuda/quotients.h"
#include "compiler/codegen/cuda/scope.h"
#include "compiler/codegen/cuda/shared.h"
#include "compiler/codegen/cuda/stores.h"
#include "compiler/codegen/cuda/swizzle.h"
#include "compiler/codegen/cuda/unroll.h"
#include "compiler/codegen/cuda/vector_loops.h"
#include "compiler/codegen/cuda/vectors.h"
#include "compiler/codegen/cuda/warp_reduce.h"
#include "compiler/codegen/cuda/warp_shuffles.h"
#include "compiler/ir/program.h"
#include "compiler/lower/warp_registers.h"

namespace kiln::codegen {

// References are kept; `names` and `preamble` grow by what the kernel uses. `scope` is of the
// program's variables, for all of its kernels: to make one for each kernel would take the square of
// their number. One thread.
class CudaEmitter {
 public:
  CudaEmitter(const ir::Program& program, const ir::Kernel& kernel, const MatrixUnitPlan& units,
              const std::vector<std::string>& buffer_names, CudaScope& scope, CudaNames& names,
              CudaPreamble& preamble);
  // Its parts refer to each other.
  CudaEmitter(const CudaEmitter&) = delete;
  CudaEmitter& operator=(const CudaEmitter&) = delete;

  // Statements of the kernel, indented by two. Once.
  StatusOr<std::string> EmitBody(const SharedLayout& shared, bool is_dynamic);
  const UnrollPlan& unrolling() const { return unroll_; }
  const CudaBulkCopies& bulk_copies() const { return bulk_copies_; }
  const CudaBulkVisits& bulk_visits() const { return bulk_visits_; }

 private:
  void EmitOnce(const SharedLayout& shared, bool is_dynamic);
  void EmitShared(const SharedLayout& shared, bool is_dynamic);
  void Emit(ir::Stmt stmt);
  // And what it is waited for inside of it.
  void EmitWhole(ir::Stmt stmt);
  void EmitFor(ir::Stmt loop);
  void EmitLoop(ir::Stmt loop);
  void EmitBound(ir::Stmt loop);
  void EmitBoundInside(ir::Stmt loop);
  void EmitInstruction(ir::Stmt stmt);
  void EmitMatrixTile(const MatrixTile& tile);
  bool EmitBulkRing(ir::Stmt loop);
  bool EmitQuadStores(ir::Stmt loop, ir::Expr where = nullptr);
  void EmitIf(ir::Stmt condition);
  void EmitStore(ir::Stmt store);
  bool EmitHeldPair(ir::Stmt loop);
  bool EmitHeldRow(ir::Stmt store);
  bool EmitExchange(ir::Stmt store, const std::string& name, const lower::HeldRows::Exchange& rows);
  std::string RegisterOf(const lower::RegisterNumber& number);
  void EmitSeq(ir::Stmt seq);
  void EmitAlloc(ir::Stmt alloc);
  void EmitBarrier(ir::Stmt barrier);
  void EmitCommit();
  void CommentStage(ir::Stmt stmt);
  std::string Coordinate(ir::LoopKind kind) const;
  // As in UnrollPlan; 0 leaves it to the compiler.
  int64_t CopiesOf(ir::Stmt loop) const;

  const ir::Program& program_;
  const ir::Kernel& kernel_;
  const MatrixUnitPlan& units_;
  CudaNames& names_;
  CudaPreamble& preamble_;

  CudaScope& scope_;
  QuotientNames quotients_;
  Swizzles swizzles_;
  const lower::WarpRegisters held_;
  CudaExprs exprs_;
  CudaBlocks blocks_;
  CudaStores stores_;
  CudaVectors vectors_;
  CudaVectorLoops vector_loops_;
  WarpShuffles shuffles_;
  CudaMatrixTiles matrix_tiles_;
  CudaBulkCopies bulk_copies_;
  CudaBulkVisits bulk_visits_;
  CudaQuadStores quad_stores_;

  const WarpReductions warp_reductions_;
  const UnrollPlan unroll_;
  const bool uses_warpgroups_;
  int32_t stage_ = -1;                    // of the last comment
  ThreadsAround threads_;                 // around the current statement
  int64_t copies_under_way_ = kNoCopies;  // behind the last barrier
  bool has_warp_barriers_ = false;
  bool has_matrix_tiles_ = false;  // some have been emitted
  Status refused_;                 // why an instruction has no text
  // Barriers of the cluster emitted so far; after which of them the kernel ends, -1: none.
  int cluster_barriers_ = 0, last_cluster_barrier_ = -1;
};

}  // namespace kiln::codegen
