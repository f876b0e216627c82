// Which tiles of a sum of products matrix units compute: mma.sync with operands from shared memory.
// Internal to this folder.
//
// A stage with Hint::kMatrixUnit says so of its register tile
//
//   for k: for i, j:  c[i, j] = c[i, j] + float32(a[.., k])*float32(b[k, ..])
//
// in a loop over the threads of a block. As a program it is what every thread computes for itself.
// The 32 threads of a warp compute the same together, where what they have fits the fragments of
// the instruction for the type of the factors (compiler/instructions/matrix_unit.h). For all of them (PTX ISA,
// "Matrix Fragments for mma") thread t of a warp has of the result the rows t/4 and t/4 + 8 and the
// columns t%4*2 and t%4*2 + 1. Which rows of the matrix these are is all the same to the instruction,
// so that a tile is one of the schedule:
//
//   * a depends on the thread through t/4 (and its warp), b through t%4 (and its warp); a and b may
//     stand in either order;
//   * two values of the loops that move a are rows t/4 and t/4 + 8, two neighbours of those that
//     move b are the columns, or two of four neighbours;
//   * warps lie along the rows, or, 2, 4 or 8 of them, beside each other along the columns too: then
//     the threads of the program, of which 4 times as many have one row, are numbered so that 8 x 4
//     of them are a warp; or all threads of a column follow each other in the program, as where the
//     columns are the first axis of the result and the rows the last one;
//   * a loop of the reduction, which goes inside of the others, has a multiple of the instruction's
//     depth of iterations;
//   * factors come into registers in one of the ways of MatrixOperand::Reading. The second one may be
//     computed there: b[k, ..] is then a value of several loads from shared memory. Units of four
//     warps have the first one so.
//
// The order of the sum is the instruction's: products are exact in the type of the sum (but for
// factors that are rounded before), and added up with at least its precision but for rounding.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/arith/linear.h"
#include "compiler/codegen/cuda/matrix_places.h"
#include "compiler/codegen/cuda/scope.h"
#include "compiler/codegen/cuda/swizzle.h"
#include "compiler/codegen/cuda/tile_order.h"
#include "compiler/ir/matrix_unit_scope.h"
#include "compiler/ir/program.h"
#include "compiler/lower/warp_registers.h"

namespace kiln::codegen {

// The threads around a statement.
struct ThreadsAround {
  int32_t var = -1;  // threadIdx.x; -1: none
  int64_t count = 1;
  bool is_all = true;  // nothing but threadIdx.x numbers them, and no condition leaves some out

  // Returns the threads around what stands in a bound loop, or in a condition.
  ThreadsAround In(ir::Stmt stmt) const;
};

// Finds the tiles of one kernel. References are kept. One thread. Cost: three simplified addresses for
// each element of a tile.
class MatrixTileMatcher {
 public:
  // Matching sets the interleaved rows of `swizzles`. A tile that is matched again then is one of
  // interleaved rows.
  MatrixTileMatcher(const ir::Program& program, CudaScope& scope, Swizzles& swizzles,
                    const lower::WarpRegisters& held)
      : program_(program), scope_(scope), swizzles_(swizzles), held_(held) {}

  // All tiles of a kernel have their threads in one order, that of the first. InvalidArgument: why
  // units of this scope can't compute the nest.
  StatusOr<MatrixTile> Find(const RegisterTile& nest, ir::MatrixUnitScope of,
                            const ThreadsAround& threads);

 private:
  // A tile that is matched, and the places of its elements so far, [position].
  struct Match {
    MatrixTile tile;
    std::optional<MatrixPlaces> places = {};
    std::vector<arith::Linear> a = {}, b = {};
  };

  StatusOr<MatrixTile> MatchIn(const RegisterTile& nest, ir::MatrixUnitScope of,
                               const ThreadsAround& threads, WarpOrder order);
  Status CheckFactors(const RegisterTile& nest, MatrixTile& tile) const;
  Status CheckLoads(const MatrixTile& tile) const;
  Status FindSumLoop(const RegisterTile& nest, MatrixTile& tile) const;
  Status MatchPlaces(Match& match);
  bool DependsOnColumn(Match& match, ir::Expr load);
  Status FindPositions(Match& match);
  Status SortSums(Match& match, const std::vector<std::pair<size_t, size_t>>& positions,
                  const std::vector<int64_t>& sums);
  Status CheckOperand(bool is_first, Match& match);
  Status CheckNeighbours(bool is_first, const Match& match, MatrixOperand& operand);
  Status CheckRows(Match& match, MatrixOperand& operand);
  Status CheckHeld(MatrixTile& tile) const;
  // matrix_tile_computed.cc
  bool TakeComputedFactor(const RegisterTile& nest, MatrixTile& tile) const;
  Status CheckComputed(Match& match);
  Status FindNeighbourLoop(Match& match) const;
  // matrix_warpgroup.h
  Status MatchWarpgroup(Match& match);
  Status MatchColumns(Match& match);
  void MatchRows(Match& match);
  Status DescribeRowsOf(Match& match, const Swizzle& swizzle);

  const ir::Buffer& buffer(int32_t slot) const {
    return program_.buffers[static_cast<size_t>(slot)];
  }

  const ir::Program& program_;
  CudaScope& scope_;
  Swizzles& swizzles_;
  const lower::WarpRegisters& held_;
  std::optional<WarpOrder> order_;
};

}  // namespace kiln::codegen
