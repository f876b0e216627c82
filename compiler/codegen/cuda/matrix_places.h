// The tile of an instruction of matrix units, and the places of its operands. Internal to this
// folder.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compiler/arith/linear.h"
#include "compiler/codegen/cuda/places.h"
#include "compiler/codegen/cuda/scope.h"
#include "compiler/codegen/cuda/swizzle.h"
#include "compiler/codegen/cuda/warpgroup_factor.h"
#include "compiler/instructions/matrix_unit.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// Which threads of the program are a warp of 8 x 4.
struct WarpOrder {
  int64_t columns = 1;  // warps beside each other
  // Number of threads of a column, which follow each other, before those of the next of its four
  // columns; `columns` is 1 then. 0: threads of a row follow each other.
  int64_t rows = 0;

  bool is_by_column() const { return rows > 0; }
  // Returns false if they are 32 that follow each other, four of each row.
  bool is_changed() const { return columns > 1 || is_by_column(); }
  bool operator==(const WarpOrder&) const = default;
};

// A factor in shared memory.
struct MatrixOperand {
  // The way in which elements come into registers. 16 bytes are aligned for ldmatrix.
  enum class Reading : uint8_t {
    kRows,      // ldmatrix: neighbours are along k
    kColumns,   // of 16 bits: ldmatrix transposes; 8 neighbours are rows or columns of threads
    kElements,  // of 32 bits: each thread loads its own
    // 8 bits: ldmatrix transposes pairs of neighbours, which are taken apart. A thread has rows
    // 2*(t/4) and 2*(t/4) + 1, or columns 4*(t%4) to 4*(t%4) + 3 in two tiles.
    kPairs,
    kHeld,  // the first one: each thread has them already (lower/warp_registers.h)
    // 16 bits: each thread computes its own (computed_factor.h). Neighbouring columns of a thread,
    // of which there are `group`, are of group/2 tiles: the first half of them are even columns of
    // the instruction, the second half odd ones. Units of four warps have the first factor so: of
    // the `group` neighbouring rows of a thread each two are of one tile.
    kComputed,
  };
  // The load that tells the columns, or the rows, apart, if the factor is computed.
  ir::Expr load = nullptr;
  // The value of a computed factor; null: it is the load. The loop over its neighbours.
  ir::Expr computed = nullptr;
  ir::Stmt neighbours = nullptr;
  Reading reading = Reading::kRows;
  // A position is a row or a column of the thread. Each has here the number of the first of the
  // thread's elements there. The elements are numbered as the loops run.
  std::vector<size_t> elements;
  // Each position has here how far the position after the next one is. 0: no constant.
  std::vector<int64_t> next;
  int64_t k_stride = 0;     // from a term of the sum to the next one
  int64_t pair_stride = 0;  // from a position of an even number to the next one
  size_t group = 2;         // positions that are read by one row
};

// A tile that a matrix unit computes, and which thread has what of it. These are numbers; addresses
// are those of MatrixPlaces.
struct MatrixTile {
  const instructions::MatrixUnit* unit = nullptr;
  ir::Stmt store = nullptr;
  std::vector<ir::Stmt> around;  // reduction loops but for the innermost one
  std::vector<ir::Stmt> inside;  // loops over the elements of a thread
  ir::Stmt k_loop = nullptr;
  int32_t thread = -1;  // threadIdx.x
  int64_t num_threads = 0;
  WarpOrder order = {};
  bool is_warpgroup = false;  // of four warps together
  MatrixOperand a = {}, b = {};
  // The place of each sum in its array, [row][column].
  std::vector<std::vector<int64_t>> sums = {};
  bool is_of_one_warp = false;  // addresses do not depend on which warp it is
  // Four warps together: the second factor, and the first one if the units read it.
  WarpgroupFactor columns = {};
  std::optional<WarpgroupFactor> rows = {};
  SumsApart sums_apart = {};

  bool has_warps() const {
    return num_threads >
           (is_warpgroup ? instructions::kWarpgroupThreads : instructions::kWarpThreads);
  }
  bool is_held() const { return a.reading == MatrixOperand::Reading::kHeld; }
  bool is_first_computed() const { return a.computed != nullptr; }
  // The factor that is computed, if one is.
  const MatrixOperand& computed() const { return is_first_computed() ? a : b; }
  int64_t depth() const { return unit->depth(); }
  int64_t steps() const { return k_loop->extent / depth(); }
};

// Places of the operands of a tile, in variables of a scope: which thread of which warp, which term.
// References are kept. While it lives, variables of the program have the values of the last place
// that was asked for, until Reset. One thread.
class MatrixPlaces {
 public:
  MatrixPlaces(const ir::Program& program, const Swizzles& swizzles, CudaScope& scope,
               const MatrixTile& tile);

  // Variables of the scope: the warp (or the four warps together), the warp among four, thread / 4
  // and thread % 4 in a warp, the thread in it, the step of the reduction, which is `depth` terms,
  // and the term in it.
  int32_t warp() const { return warp_; }
  int32_t member() const { return member_; }
  int32_t row() const { return row_; }
  int32_t column() const { return column_; }
  int32_t lane() const { return lane_; }
  int32_t step() const { return step_; }
  int32_t k() const { return k_; }
  // Steps are written out, and this is the current one.
  void SetStep(int64_t step) { known_step_ = step; }
  int64_t known_step() const { return known_step_; }

  // Gives the loops over elements their values at an element.
  void SetElement(size_t element);
  void Reset();

  // Gives the loops, the thread and the term their values at the element of a thread, and at the k-th
  // term of the step.
  void SetPlace(size_t element, const arith::Linear& row, const arith::Linear& column,
                const arith::Linear& k);
  // The same for what the thread has itself of a computed factor: of the tiles of the group of
  // neighbours that begins at position `first`, at the term of a register's half.
  void SetComputed(size_t first, int register_of_tile, int half);
  // Returns the number of the first of what the thread has itself among the neighbours of a group.
  arith::Linear FirstOfComputed();
  // Returns the place of a factor there.
  arith::Linear PlaceOf(ir::Expr load, size_t element, const arith::Linear& row,
                        const arith::Linear& column, const arith::Linear& k);
  // Returns the place of the row of 16 bytes that the thread names to ldmatrix.
  arith::Linear RowOf(const MatrixOperand& operand, size_t position);
  // Returns the place of the thread's own element for register `part` of a fragment.
  arith::Linear ElementOf(const MatrixOperand& operand, size_t position, int part);
  // Returns the place where the second factor starts, at the step.
  arith::Linear StartOfColumns();
  // Returns the place where 64 rows of the first factor start, those from this position on.
  arith::Linear StartOfRows(size_t position);

 private:
  arith::Linear ThreadOf(const arith::Linear& row, const arith::Linear& column);
  arith::Linear InColumns(const arith::Linear& row, const arith::Linear& column);

  const ir::Program& program_;
  const Swizzles& swizzles_;
  CudaScope& scope_;
  const MatrixTile& tile_;
  int32_t warp_, member_, row_, column_, lane_, step_, k_;
  int64_t known_step_ = -1;
};

// The sum without the terms that are the variable.
arith::Linear WithoutVar(const arith::Linear& e, int32_t var);

}  // namespace kiln::codegen
