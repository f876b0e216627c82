// Results of matrix units, stored 16 bytes at once. Internal to this folder.
//
// Of a row of 8 columns each of four threads has two neighbours (matrix_tile.h): of 16 bits stores of 4
// bytes, of which a warp writes half a sector of 32 bytes in 8 rows. Of four such tiles beside each other the four
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
// Of 32 bits two threads exchange pairs of two tiles: the first has four columns of the first tile then, the
// other one of the second.
//
//   unsigned quad[4] = {bits of value of 2 v and j = 0, of j = 1, of 2 v + 1 and j = 0, of j = 1};
//   exchange_pairs(quad);
//   16 bytes at out[.. + 16 v + 8 (t%2) + 4 (t%4/2)] = quad;
//
// Where the loop goes over several rows of the result, whose tiles are no whole groups, it becomes two: over
// rows, and over the groups of a row. What is left of a row is stored in pairs.
//
// What the value reads of another tensor at such places, a residual sum say, comes the same way: 16
// bytes are loaded, and exchanged.
//
// Tiles may reach beyond the last row or the last column, which conditions say. All threads exchange.
// Around the values of a tile stands its condition, one for the four threads; around the loads and the
// store that of the columns in a thread's 16 bytes, which are all inside or all beyond.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
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

  // Emits an iteration of the loop by itself.
  using EmitOne = absl::FunctionRef<void(ir::Stmt body)>;
  // False, and nothing is emitted: the loop is none of these. `thread` is the variable that numbers the
  // threads of the block, whole warps that all reach the loop; warps are 32 of them that follow each
  // other, or 8 x 4 of them whose last four do.
  // where: the condition in which the loop stands alone; null: none.
  // rest: for the last iterations of a row, which are too few for a group.
  bool Emit(ir::Stmt loop, int32_t thread, ir::Expr where, EmitOne rest);

 private:
  // An access to elements of as many bits, of the pairs of the loop.
  struct Access {
    int32_t slot;
    std::span<const ir::Expr> indices;
    ir::Expr load = nullptr;  // none: the store
  };
  bool Matches(ir::Stmt loop, ir::Stmt store, int32_t thread);
  bool MatchesInRows(ir::Stmt loop, ir::Stmt store, int32_t thread);
  void SetRows(ir::Stmt loop, int64_t tiles_of_row);
  arith::Linear InRow(const arith::Linear& tile) const;
  arith::Linear InGroup(const arith::Linear& tile) const;
  // A part of the condition: of the tiles of a group, those whose number `tile_` makes it so.
  struct Limit {
    ir::Op op = ir::Op::kLt;  // difference < 0; or kGe: >= 0
    arith::Linear difference;
  };
  bool FindLimits(ir::Stmt loop, ir::Expr where, int32_t thread);
  bool AddLimits(ir::Expr condition, int32_t thread);
  std::optional<Limit> LimitOf(ir::Expr comparison, int32_t thread);
  bool FindGuards(int32_t thread);
  ir::Expr GuardAt(const arith::Linear& tile);
  template <typename Body>
  void Guarded(ir::Expr guard, Body&& body);
  bool IsOfQuads(ir::Stmt loop, const Access& access, int32_t thread);
  bool IsSameInQuad(ir::Expr e, int32_t thread) const;
  bool FindLoads(ir::Stmt loop, ir::Stmt store, int32_t thread);
  arith::Linear PlaceOf(ir::Stmt loop, const Access& access, const arith::Linear& tile,
                        int64_t lane);
  arith::Linear PlaceAt(ir::Stmt loop, const Access& access, int64_t v, int64_t lane);
  std::string Vector(ir::Stmt loop, const Access& access, int32_t thread);
  std::vector<std::string> PairAt(ir::Stmt loop, ir::Stmt store, int64_t v,
                                  const std::vector<std::string>& loaded);
  void EmitExchange(const std::string& quad, bool is_loaded);
  std::vector<std::string> EmitLoads(ir::Stmt loop, int32_t thread);
  void EmitValues(ir::Stmt loop, const std::string& quad, const std::vector<std::string>& loaded);
  void EmitGroup(ir::Stmt loop, int32_t thread);
  void EmitRow(ir::Stmt loop, int32_t thread, ir::Expr where, EmitOne rest);

  CudaScope& scope_;
  CudaExprs& exprs_;
  CudaVectors& vectors_;
  CudaBlocks& blocks_;
  CudaNames& names_;
  CudaPreamble& preamble_;

  ir::Stmt pairs_ = nullptr;             // the loop over two neighbours
  int64_t tiles_ = 4;                    // of 8 columns each, whose results are stored at once
  int64_t rows_ = 1, tiles_of_row_ = 0;  // that the loop goes over
  int32_t row_ = -1, group_ = -1;        // variables of the scope: which row, which group of it
  int32_t tile_ = -1, lane_ = -1;        // likewise: which tile of a group, which of two neighbours
  std::vector<Limit> limits_;
  ir::Expr always_ = nullptr;     // what else the condition says, the same for all; null: nothing
  std::vector<ir::Expr> guards_;  // of the scope: of the values of each tile; null: none
  ir::Expr vector_guard_ = nullptr;  // of the thread's 16 bytes; null: none
  std::vector<Access> loads_;        // of the value
};

std::string_view QuadDefinition();

}  // namespace kiln::codegen
