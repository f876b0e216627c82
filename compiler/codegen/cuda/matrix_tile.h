// Tiles of a sum of products by matrix units: mma.sync with operands from shared memory. Internal
// to this folder.
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
//   * factors come into registers in one of the ways of Operand::Reading.
//
// The order of the sum is the instruction's: products are exact in the type of the sum (but for
// factors that are rounded before), and added up with at least its precision but for rounding.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/codegen/cuda/blocks.h"
#include "compiler/codegen/cuda/exprs.h"
#include "compiler/codegen/cuda/matrix_warpgroup.h"
#include "compiler/codegen/cuda/names.h"
#include "compiler/codegen/cuda/preamble.h"
#include "compiler/codegen/cuda/scope.h"
#include "compiler/codegen/cuda/swizzle.h"
#include "compiler/codegen/cuda/tile_order.h"
#include "compiler/codegen/cuda/vectors.h"
#include "compiler/codegen/cuda/warp_reduce.h"
#include "compiler/instructions/matrix_unit.h"
#include "compiler/ir/program.h"
#include "compiler/lower/warp_registers.h"

namespace kiln::codegen {

// No copies are waited for.
inline constexpr int64_t kNoCopies = std::numeric_limits<int64_t>::min();

// Nothing but asynchronous copies, which touch no registers of a tile?
bool IsCopies(ir::Stmt stmt);

// Is the store the sum of a tile that matrix units are to compute?
bool IsForMatrixUnits(const ir::Program& program, ir::Stmt store);

// Which threads of the program are a warp of 8 x 4.
struct WarpOrder {
  int64_t columns = 1;  // warps beside each other
  // Threads of a column, which follow each other, before those of the next of its four columns; 0: threads
  // of a row do. `columns` is 1 then.
  int64_t rows = 0;

  bool is_by_column() const { return rows > 0; }
  // Are they others than 32 that follow each other, four of each row?
  bool is_changed() const { return columns > 1 || is_by_column(); }
  bool operator==(const WarpOrder&) const = default;
};

// The threads around a statement.
struct ThreadsAround {
  int32_t var = -1;  // threadIdx.x; -1: none
  int64_t count = 1;
  bool is_all = true;  // nothing but threadIdx.x numbers them, and no condition leaves some out
};

// References are kept. One thread. Cost: three simplified addresses for each element of a tile.
class CudaMatrixTiles {
 public:
  // Of `swizzles` it finds which rows are to be interleaved, where a kernel is emitted for the first
  // time.
  CudaMatrixTiles(CudaScope& scope, Swizzles& swizzles, CudaExprs& exprs, CudaVectors& vectors,
                  CudaBlocks& blocks, const lower::WarpRegisters& held, CudaNames& names,
                  CudaPreamble& preamble)
      : scope_(scope),
        swizzles_(swizzles),
        exprs_(exprs),
        vectors_(vectors),
        blocks_(blocks),
        held_(held),
        names_(names),
        preamble_(preamble) {}

  // Emits the nest, behind a barrier with so many groups of copies under way; kNoCopies: that waits for none.
  // InvalidArgument: why the tile does not fit; nothing is emitted then.
  Status Emit(const RegisterTile& tile, const ThreadsAround& threads, int64_t copies_under_way);
  // How many tiles that were emitted are still being computed, the latest ones last.
  size_t under_way() const { return under_way_.size(); }
  // Waits for all but the first `kept` of them, or, in a ring with buffers to spare, for those of
  // earlier iterations.
  void Wait(size_t kept);
  // The same, for no more of them than a statement needs that comes next.
  void WaitBefore(ir::Stmt next, size_t kept);
  // Behind the loop: waits for those of its last iterations, where there are any.
  bool is_in_ring() const { return !ring_sums_.empty(); }
  void WaitForRing();
  // As the last tile had them; as they are: there was none.
  WarpOrder warp_order() const { return order_.value_or(WarpOrder()); }

 private:
  // An operand in shared memory.
  struct Operand {
    // How its elements come into registers. For ldmatrix 16 bytes are aligned.
    enum class Reading : uint8_t {
      kRows,      // ldmatrix: neighbours are along k
      kColumns,   // of 16 bits: ldmatrix transposes; 8 neighbours are rows or columns of threads
      kElements,  // of 32 bits: each thread loads its own
      // Of 8 bits: ldmatrix transposes pairs of neighbours, which are taken apart. A thread has rows
      // 2*(t/4) and 2*(t/4) + 1, or columns 4*(t%4) to 4*(t%4) + 3 in two tiles.
      kPairs,
      kHeld,  // the first one: each thread has them already (lower/warp_registers.h)
    };
    ir::Expr load = nullptr;
    std::vector<arith::Linear> places;  // of element (0, 0) of a fragment; [position]
    Reading reading = Reading::kRows;
    int64_t k_stride = 0;     // where it is
    int64_t pair_stride = 0;  // from a place to the next one, of an even number
    size_t group = 2;         // places that are read by one row
  };
  struct Tile {
    const instructions::MatrixUnit* unit = nullptr;
    ir::Stmt store = nullptr;
    std::vector<ir::Stmt> around;  // reduction loops but for the innermost one
    std::vector<ir::Stmt> inside;  // loops over the elements of a thread
    ir::Stmt k_loop = nullptr;
    int32_t thread = -1;
    int64_t num_threads = 0;
    // Variables of the scope: which warp, thread / 4 and thread % 4 in it, thread in it, which
    // iterations of the reduction, `depth` at once, which of them.
    int32_t warp = -1, row = -1, column = -1, lane = -1, step = -1, k = -1;
    int64_t known_step = -1;  // where steps are written out
    Operand a, b;
    std::vector<std::vector<Place>> sums;  // [position of a][of b]
    // Elements of a thread by number: the first of each position.
    std::vector<size_t> a_elements, b_elements;
    // Of four warps together: `warp` numbers warpgroups, `member` the warps of one.
    bool is_warpgroup = false;
    WarpOrder order = {};
    int32_t member = -1;
    WarpgroupFactor columns = {};
    // Of the first factor, where the units read it: of each 64 rows, which start at these places.
    std::optional<WarpgroupFactor> rows = {};
    std::vector<arith::Linear> row_starts = {};
    SumsApart sums_apart = {};

    bool has_warps() const {
      return num_threads > (is_warpgroup ? instructions::kWarpgroupThreads : kWarpThreads);
    }
    int64_t depth() const { return unit->depth(); }
    int64_t steps() const { return k_loop->extent / depth(); }
  };

  StatusOr<Tile> Find(const RegisterTile& tile, const ThreadsAround& threads);
  static std::vector<WarpOrder> OrdersOf(const ThreadsAround& threads);
  StatusOr<Tile> Match(const RegisterTile& tile, const ThreadsAround& threads, WarpOrder order);
  Status FindPositions(const RegisterTile& nest, Tile& tile);
  Status CheckOperand(std::string_view what, int own, int other, Tile& tile, Operand& operand);
  Status CheckNeighbours(bool is_row, const Tile& tile, Operand& operand);
  Status CheckRows(const Tile& tile, Operand& operand);
  Status CheckHeld(Tile& tile);
  static bool HasNext(const Operand& operand, size_t position);
  arith::Linear RowOf(const Tile& tile, const Operand& operand, size_t position);
  arith::Linear ElementOf(const Tile& tile, const Operand& operand, size_t position, int part);
  arith::Linear PlaceWith(const Tile& tile, ir::Expr load, size_t element, const arith::Linear& row,
                          const arith::Linear& column, const arith::Linear& k);
  arith::Linear InColumns(int64_t of_column, const arith::Linear& row, const arith::Linear& column);
  arith::Linear PlaceOfThread(const Tile& tile, ir::Expr load, const arith::Linear& thread,
                              const arith::Linear& k);
  bool DependsOnColumn(const Tile& tile, ir::Expr load);
  void SetPosition(const Tile& tile, size_t element);
  static bool IsOfOneWarp(const Tile& tile);
  std::string ThreadName(const Tile& tile) const;
  bool MayRunBeside(ir::Stmt stmt) const;
  std::vector<std::string> SumsFrom(size_t first, size_t end) const;
  void EmitSteps(const Tile& tile);
  void EmitStep(const Tile& tile);
  void EmitKnownSteps(Tile tile);
  // matrix_warpgroup.h
  static Status CheckWarpgroups(const Tile& tile, const ThreadsAround& threads);
  Status MatchWarpgroup(Tile& tile);
  Status MatchColumns(Tile& tile);
  void MatchRows(Tile& tile);
  Status DescribeRowsOf(Tile& tile, const Swizzle& swizzle);
  static int64_t SpareBuffers(const Tile& tile, const CudaExprs& exprs, int64_t copies_under_way);
  arith::Linear StartOfColumns(const Tile& tile);
  void EmitWarpgroupSteps(Tile tile);
  static std::pair<size_t, size_t> ColumnsOf(const Tile& tile, size_t fragment);
  void LoadFirst(const Tile& tile, const std::string& name);
  void TakeHeld(const Tile& tile, const std::string& name);
  void LoadSecond(const Tile& tile, const std::string& name);
  void LoadSecondPairs(const Tile& tile, const std::string& name);
  void Unzip(const Tile& tile, const std::string& first, const std::string& second);
  std::string Row(const Tile& tile, const Operand& operand, size_t position);
  std::string Element(const Tile& tile, const Operand& operand, size_t position, int part);
  void Reset(const Tile& tile);

  CudaScope& scope_;
  Swizzles& swizzles_;
  CudaExprs& exprs_;
  CudaVectors& vectors_;
  CudaBlocks& blocks_;
  const lower::WarpRegisters& held_;
  CudaNames& names_;
  CudaPreamble& preamble_;

  std::optional<WarpOrder> order_;
  // A tile whose products go on beside the threads.
  struct UnderWay {
    int32_t sums = -1, held = -1;  // buffers in registers that they change, and that they read
    bool is_committed_once = true;
    int64_t iterations = 0;  // whose products need not be waited for
  };
  std::vector<UnderWay> under_way_;
  std::string ring_sums_;  // the array of earlier iterations' tiles
  int64_t spare_ = 0;      // iterations of the tile that is emitted
};

}  // namespace kiln::codegen
