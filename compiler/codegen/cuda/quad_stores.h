// Results of matrix units in 16 or 8 bits, stored 16 bytes at once. Internal to this folder.
//
// Of a row of 8 columns each of four threads has two neighbours (matrix_tile.h): stores of 4 bytes, of
// which a warp writes half a sector of 32 bytes in 8 rows. Of four such tiles beside each other the four
// threads exchange their pairs, so that each has all 8 columns of one of them. A loop
//
//   for v: vectorize j in 0..2:  out[.. + 8 v + 2 (t%4) + j] = value
//
// is then one over groups of four v:
//
//   unsigned quad[4] = {pack_f16(value of 4 v and j = 0, j = 1), of 4 v + 1, ...};
//   transpose_quad(quad);
//   16 bytes at out[.. + 32 v + 8 (t%4)] = quad;
//
// Of 8 bits a register has the pairs of two such tiles, and the loop is over groups of eight. What a
// thread has got then are pairs of both tiles in turn, which zip_pairs puts behind each other:
//
//   unsigned quad[4] = {pack_e4m3(of 8 v) | pack_e4m3(of 8 v + 1) << 16, of 8 v + 2 and 8 v + 3, ...};
//   transpose_quad(quad);
//   zip_pairs(quad);
//   16 bytes at out[.. + 64 v + 16 (t%4)] = quad;
//
// What the value reads of another tensor at such places, a residual sum say, comes the same way: 16
// bytes are loaded, and exchanged.
//
// Tiles may reach beyond the last row. Where a condition says so, which is the same for four threads
// and for the tiles of a group, it stands around the loads, the values and the store; all threads
// exchange.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/arith/linear.h"
#include "compiler/codegen/cuda/blocks.h"
#include "compiler/codegen/cuda/exprs.h"
#include "compiler/codegen/cuda/names.h"
#include "compiler/codegen/cuda/preamble.h"
#include "compiler/codegen/cuda/scope.h"
#include "compiler/codegen/cuda/vectors.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// References are kept. One thread.
class CudaQuadStores {
 public:
  CudaQuadStores(CudaScope& scope, CudaExprs& exprs, CudaVectors& vectors, CudaBlocks& blocks,
                 CudaNames& names, CudaPreamble& preamble)
      : scope_(scope),
        exprs_(exprs),
        vectors_(vectors),
        blocks_(blocks),
        names_(names),
        preamble_(preamble) {}

  // False, and nothing is emitted: the loop is none of these. `thread` is the variable that numbers the
  // threads of the block, whole warps that all reach the loop; warps are 32 of them that follow each
  // other, or 8 x 4 of them whose last four do.
  // where: the condition in which the loop stands alone; null: none.
  bool Emit(ir::Stmt loop, int32_t thread, ir::Expr where = nullptr);

 private:
  // An access to elements of as many bits, of the pairs of the loop.
  struct Access {
    int32_t slot;
    std::span<const ir::Expr> indices;
    ir::Expr load = nullptr;  // none: the store
  };
  bool Matches(ir::Stmt loop, ir::Stmt store, int32_t thread);
  bool FindGuard(ir::Stmt loop, ir::Expr where, int32_t thread);
  ir::Expr GuardAt(ir::Stmt loop, ir::Expr where, int64_t v);
  template <typename Body>
  void Guarded(Body&& body);
  bool IsOfQuads(ir::Stmt loop, const Access& access, int32_t thread);
  bool IsSameInQuad(ir::Expr e, int32_t thread) const;
  bool FindLoads(ir::Stmt loop, ir::Stmt store, int32_t thread);
  arith::Linear PlaceAt(ir::Stmt loop, const Access& access, int64_t v, int64_t lane);
  std::string Vector(ir::Stmt loop, const Access& access, int32_t thread);
  std::string PairAt(ir::Stmt loop, ir::Stmt store, int64_t v,
                     const std::vector<std::string>& loaded);
  std::vector<std::string> EmitLoads(ir::Stmt loop, int32_t thread);

  CudaScope& scope_;
  CudaExprs& exprs_;
  CudaVectors& vectors_;
  CudaBlocks& blocks_;
  CudaNames& names_;
  CudaPreamble& preamble_;

  ir::Stmt pairs_ = nullptr;   // the loop over two neighbours
  int64_t tiles_ = 4;          // of 8 columns each, whose results are stored at once
  int32_t group_ = -1;         // a variable of the scope: which of these groups
  ir::Expr guard_ = nullptr;   // of the scope: of each group; null: none
  std::vector<Access> loads_;  // of the value
};

std::string_view QuadDefinition();

}  // namespace kiln::codegen
