// Tiles that the bulk copy engine of sm_90 (TMA) brings into shared memory: Hint::kBulkCopies of a
// stage whose tiles are multiplied by units of four warps. Internal to this folder.
//
// As a program the tiles of a loop are a ring of buffers, filled ahead by asynchronous copies of all
// threads (compiler/lower/fetch_ahead.h):
//
//   for s < ahead { copies of tiles s; commit }
//   for t { barrier(ahead - 1); products of tiles t; if t + ahead < n { copies of t + ahead }; commit }
//
// That is what the interpreter runs and what races are checked on. On the GPU a warp of its own, behind
// those that compute, has one thread that tells the engine of each tile; no thread computes an address
// or waits for another but at the tiles (warp specialisation; CUTLASS 3, "Efficient GEMM in CUDA"):
//
//   thread that copies:  for u < n { wait until buffer u % depth is empty; copies of u into it }
//   all others:          for t { wait until buffer t % depth is filled; products of t;
//                                buffer of what is done: empty }
//
// Barriers in shared memory (mbarrier) say what is filled and what is empty.
//
// A tile can be brought so if element s of the buffer is element base + s of the array in all
// dimensions, zeros where that is beyond the ends of the array: all that a loop over threads computes
// then says no more than where the tile starts. The engine permutes the rows as swizzle.h does. Where
// rows are interleaved the array is told of with more dimensions: of each 2 n rows 8, two halves, groups.
// Where rows are padded to whole lines, no more of the last line comes than the tile has.
// Where the array ends within a group, the tiles of its last rows come 8 rows at a time, those that
// there are, of the array as it is.
//
// Of the hint's value 2 blocks are pairs (clusters), one behind the other in a column of tiles
// (block_order.h): of the tile that both need each copies one half, into the shared memory of both
// (multicast). A buffer is empty when the threads of both say so.
//
// Persistent blocks (Hint::kPersistentBlocks) go from tile to tile of the result: the thread that copies
// is ahead of the others, so that the first tiles of the next sum arrive while the results of this one
// are stored. Buffers and phases of barriers go on from one sum to the next.
//
// Where sums are streamed (Hint::kStreamK; Osama et al., "Stream-K", PPoPP 2023), the terms of all sums
// stand in one row, which the blocks share out evenly. So a block begins in the middle of a sum and ends
// in the middle of another one. It goes from its end to its beginning: the sum that it only begins comes
// first, and lies in global memory long before the next block, which finishes it, adds it to its own.
//
//   block 1:   | 0 0 0 1 1 |        tiles of the result, two terms of each third
//   block 2:   | 1 2 2 2 3 |        begins 3 and gives it away, 2, finishes 1
//
// A block waits for those of lower numbers alone, which are launched before it.
//
// What does not fit is refused: the hint is a search's choice, and nothing else would be as fast as it
// expects.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/arrays/tensor_map.h"
#include "base/status.h"
#include "compiler/arith/linear.h"
#include "compiler/codegen/cuda/block_order.h"
#include "compiler/codegen/cuda/blocks.h"
#include "compiler/codegen/cuda/exprs.h"
#include "compiler/codegen/cuda/names.h"
#include "compiler/codegen/cuda/preamble.h"
#include "compiler/codegen/cuda/scope.h"
#include "compiler/codegen/cuda/shared.h"
#include "compiler/codegen/cuda/swizzle.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// Interleaved rows that follow each other.
inline constexpr int64_t kGroupRows = 8;

// The ring of a kernel that wants bulk copies. References are kept. One thread.
class CudaBulkCopies {
 public:
  CudaBulkCopies(const ir::Program& program, const ir::Kernel& kernel, const Swizzles& swizzles,
                 CudaScope& scope, CudaExprs& exprs, CudaBlocks& blocks, CudaNames& names,
                 CudaPreamble& preamble);

  // Where the kernel wants none, nothing below holds.
  bool is_used() const { return is_used_; }
  // Why the kernel can't have what it wants.
  const Status& status() const { return status_; }

  // The copies ahead of the loop, which the other warp does.
  bool IsAhead(ir::Stmt stmt) const { return ahead_.contains(stmt); }
  bool IsRing(ir::Stmt stmt) const { return loop_ != nullptr && stmt == loop_; }
  const std::vector<ir::Stmt>& work() const { return work_; }
  int64_t depth() const { return depth_; }
  int64_t computing_threads() const { return kernel_.block[0]; }
  bool has_pairs() const { return has_pairs_; }
  // Blocks that are launched, fewer than there are tiles; 0: one for each.
  int64_t persistent_blocks() const { return persistent_blocks_; }

  // Finds out what the tiles are: rows are interleaved once the products have been emitted. Then
  // emits barriers at `barriers`, the address of instructions::kBulkBarrierBytes, and the warp that copies.
  // coordinate(kind): the text of the number of a block.
  void EmitStart(std::string_view barriers,
                 const std::function<std::string(ir::LoopKind)>& coordinate);
  // The tiles of blocks in this order are better for the cache; none: as they are numbered.
  const std::optional<BlockGrid>& block_grid() const { return block_grid_; }
  // body() with the loop's variable bound: that numbers the blocks.
  bool IsOfPersistentBlocks(ir::Stmt loop) const {
    return persistent_blocks_ > 0 && loop->var == block_;
  }
  template <typename Body>
  void EmitTiles(ir::Stmt loop, Body&& body);
  // The loop over tiles of a sum.
  template <typename Body>
  void EmitIterations(Body&& body);
  // Behind it.
  void EmitReleaseOfLast();
  void EmitPartsOfSum();
  // What stands in front of the kernel: arrays in global memory.
  const std::string& globals() const { return globals_; }
  // Inside of the loop: before and behind its work. `is_next_under_way`: the products of this
  // iteration are not waited for, those of the one before are done.
  void EmitArrival();
  void EmitRelease(bool is_next_under_way);
  // At the end of the kernel.
  void EmitEnd();

  // Parameters of the kernel, in order: names, and what of the program's buffers they map.
  std::vector<std::string> map_names() const;
  std::vector<TensorMap> maps() const;

 private:
  struct Copy {
    ir::Stmt store = nullptr;
    std::vector<int32_t> vars;  // of the loops around it
  };
  // A tile of interleaved rows that the array has not all of.
  struct RowPieces {
    TensorMap map;                     // of the array as it is, boxes of 8 rows
    std::vector<arith::Linear> start;  // in its dimensions
    int64_t rows = 0, group = 0;       // of the tile, and which are interleaved
    bool are_all = false;              // the array has no tile of whole groups
  };
  struct Tile {
    int32_t slot = -1;
    TensorMap map;                     // of the buffer that map.arg numbers
    std::vector<arith::Linear> start;  // in the array's dimensions
    int64_t panels = 1, width = 1;     // copies, and elements from one to the next in a row
    int64_t panel = 0, buffer = 0;     // elements from one to the next in shared memory
    // Of the last panel, where rows end within it: what follows is padding. None: it is whole.
    std::optional<TensorMap> last_panel;
    // Of a tile that pairs share: how far apart the halves are, in panels, or in rows of a panel.
    bool is_shared = false;
    int64_t half_panels = 0, half_rows = 0;
    std::optional<RowPieces> pieces;
    // Can it come at once, as `map` has it?
    bool has_whole() const { return !pieces || !pieces->are_all; }
    int64_t bytes() const {
      const int64_t of_panels = BoxBytes(map) * (panels - 1) + BoxBytes(last_panel.value_or(map));
      return of_panels * (half_rows > 0 ? 2 : 1);
    }
  };

  Status FindRing();
  bool FindRingIn(ir::Stmt stmt);
  bool MatchRing(std::span<const ir::Stmt> stmts, size_t at);
  void CollectCopies(ir::Stmt stmt, std::vector<int32_t>& vars);
  Status FindTiles();
  StatusOr<Tile> FindTile(const Copy& copy);
  Status FindLastPanel(const Copy& copy, int64_t row, Tile& of);
  StatusOr<std::vector<arith::Linear>> StartOf(const Copy& copy, ir::Expr load,
                                               std::vector<arith::Linear>& places);
  Status SplitRows(const Swizzle& swizzle, std::span<const int64_t> tile, Tile& of);
  void NameParts();
  void EmitBarriers(std::string_view barriers);
  void EmitCopyingThread(const std::function<std::string(ir::LoopKind)>& coordinate);
  void EmitAllCopies();
  void EmitCopies(std::string_view buffer, std::string_view filled);
  std::string IndexText(const arith::Linear& index);
  // Those of around_ that number blocks, more than one.
  std::vector<ir::Stmt> BlockLoops() const;
  void FindOrder();
  Status FindPersistent();
  Status ShareTiles();
  Status CheckStreaming();
  bool ReadsBuffersAlone(ir::Stmt stmt) const;
  void CollectSums(ir::Stmt stmt, std::set<int32_t>& slots) const;
  // Where the terms of a block begin among those of all sums.
  std::string BeginOf(std::string_view block) const;
  // Iterations of the sum, or of the part of it, that the block computes.
  std::string IterationsText() const;
  // The number of the iteration among all that the block has.
  const std::string& Position() const;
  bool IsOfColumn(const Tile& tile) const;
  // Names of a tile's maps: of whole panels, of the last one where that is not whole, and of pieces.
  struct MapNames {
    std::string whole, last, pieces;
  };
  void EmitTile(const Tile& tile, const MapNames& names, std::string_view buffer,
                std::string_view filled);
  void EmitLastRows(const Tile& tile, const MapNames& names, std::string_view buffer,
                    std::string_view filled, int64_t other_bytes);
  void EmitPieces(const Tile& tile, const std::string& map, std::string_view buffer,
                  std::string_view filled, const std::string& rows);

  const ir::Program& program_;
  const ir::Kernel& kernel_;
  const Swizzles& swizzles_;
  CudaScope& scope_;
  CudaExprs& exprs_;
  CudaBlocks& blocks_;
  CudaNames& names_;
  CudaPreamble& preamble_;

  const bool is_used_, has_pairs_;
  int64_t persistent_blocks_ = 0;
  bool is_streamed_ = false;
  int32_t sums_ = -1;  // of a thread, where they are streamed: a slot
  // Names. Iterations of sums that the block has computed before; which it is in; the terms of all sums
  // where those of this block, and of this sum, begin and end; the tile, as blocks take them.
  std::string done_, position_, first_, begin_, end_, number_;
  std::string parts_, ready_, globals_;
  Status ring_status_, status_;
  std::vector<ir::Stmt> around_;  // loops around the ring, outermost first
  std::set<ir::Stmt> ahead_;
  ir::Stmt loop_ = nullptr;
  std::vector<ir::Stmt> work_;
  std::vector<Copy> copies_;
  int64_t depth_ = 0, ahead_count_ = 0;
  std::vector<Tile> tiles_;
  std::optional<BlockGrid> block_grid_;
  int32_t iteration_ = -1;  // of the thread that copies: a variable of the scope
  int32_t buffer_ = -1;     // of persistent blocks, likewise
  int32_t half_ = -1;       // of the block in its pair, likewise
  int32_t block_ = -1;      // the only variable that numbers blocks; -1: there are several
  std::string filled_, emptied_;
  std::vector<MapNames> map_names_;  // of each tile
};

// ---- implementation of templates

template <typename Body>
void CudaBulkCopies::EmitTiles(ir::Stmt loop, Body&& body) {
  number_ = names_.Unique("number");
  done_ = names_.Unique("done");
  const auto of_tile = [&] {
    const std::string tile = block_grid_ ? OrderedBlock(*block_grid_, number_) : number_;
    blocks_.Bound(
        loop->var,
        fmt::format("const int {} = {};  // 0..{}", scope_.name(loop->var), tile, loop->extent - 1),
        body);
  };
  if (!is_streamed_) {
    blocks_.Line("#pragma unroll 1");
    return blocks_.Braced(
        fmt::format("for (int {0} = blockIdx.x, {1} = 0; {0} < {2}; {0} += {3}, {1} += {4}) {{",
                    number_, done_, loop->extent, persistent_blocks_, loop_->extent),
        of_tile);
  }
  first_ = names_.Unique("first");
  begin_ = names_.Unique("begin");
  end_ = names_.Unique("end");
  blocks_.Line(
      fmt::format("const int {} = {};  // terms of all sums", first_, BeginOf("blockIdx.x")));
  blocks_.Line("#pragma unroll 1");
  blocks_.Braced(
      fmt::format(
          "for (int {0} = 0, {1} = {2}, {3} = 0; {1} > {4}; {3} += {1} - {0}, {1} = {0}) {{",
          begin_, end_, BeginOf("blockIdx.x + 1"), done_, first_),
      [&] {
        blocks_.Line(fmt::format("const int {} = ({} - 1) / {};", number_, end_, loop_->extent));
        blocks_.Line(fmt::format("{} = max({}, {} * {});", begin_, first_, number_, loop_->extent));
        of_tile();
      });
}

template <typename Body>
void CudaBulkCopies::EmitIterations(Body&& body) {
  if (persistent_blocks_ == 0) return blocks_.Loop(loop_->var, loop_->extent, 0, body);
  position_ = names_.Unique("position");
  blocks_.Braced(
      fmt::format("for (int {0} = {1}; {0} < {1} + {2}; ++{0}) {{", position_, done_,
                  IterationsText()),
      [&] {
        scope_.SetName(buffer_, names_.Unique("buffer"));
        blocks_.Bound(
            buffer_,
            fmt::format("const int {} = {} % {};", scope_.name(buffer_), position_, depth_), [&] {
              scope_.SetValue(loop_->var, scope_.simplifier().Var(buffer_));
              body();
              scope_.ResetValue(loop_->var);
            });
      });
}

}  // namespace kiln::codegen
