// Writes the kernels of an online softmax (online_softmax.h). One class in three files:
//
//   online_builder.cc  buffers, expressions of the chain, loops over the elements of a thread
//   online_softmax.cc  the statements, in their order
//   online_splits.cc   results of blocks that share the keys, and what joins them
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/numbers/integers.h"
#include "base/status.h"
#include "compiler/dag/softmax_chain.h"
#include "compiler/instructions/matrix_unit.h"
#include "compiler/ir/program.h"
#include "compiler/lower/loop_writer.h"
#include "compiler/lower/names.h"
#include "compiler/lower/shared_tile.h"
#include "compiler/schedule/state.h"

namespace kiln::lower {

class OnlineBuilder {
 public:
  OnlineBuilder(const schedule::State& state, dag::SoftmaxChain chain)
      : state_(state),
        dag_(*state.dag()),
        chain_(std::move(chain)),
        tile_(*state.online()),
        write_(MakeProgram()) {}

  StatusOr<ir::Program> Build();

 private:
  // Shape of an instruction of matrix units.
  static constexpr int64_t kWarp = instructions::kWarpThreads,
                           kThreadRows = instructions::kThreadRows,
                           kThreadColumns = instructions::kThreadColumns,
                           kNeighbours = instructions::kThreadNeighbours,
                           kColumns = instructions::kTileColumns;
  // Sums of products are rounded up to this number of terms, that of the deepest instruction of
  // floats.
  static constexpr int64_t kTerms = 16;

  // ---- tables
  ir::Program& MakeProgram();
  int32_t NewStage(std::string_view name);
  int32_t NewBuffer(std::string_view name, ir::Type type, std::vector<int64_t> shape,
                    ir::Scope scope);
  int32_t NewRegisters(std::string_view name, std::vector<int64_t> shape) {
    return NewBuffer(name, ir::kFloat32, std::move(shape), ir::Scope::kLocal);
  }
  void MakeBuffers();
  void FindScale();
  SharedTile NewTile(ir::Expr load, TileAxis a, TileAxis b);
  Status SetMatrixUnits();
  bool HasUnit(ir::Expr term);
  Status CheckWarpgroups();

  // ---- expressions of the chain
  // Rewrites an expression for the program, with replacements for some of its parts.
  using Parts = std::map<ir::Expr, ir::Expr>;
  ir::Expr Written(ir::Expr e, const Parts& parts);
  ir::Expr LoadOf(int op) const;

  // ---- the place of a thread
  ir::Expr Lane() { return write_.Mod(thread_, kWarp); }
  ir::Expr Part() { return write_.Mod(write_.Div(thread_, kWarp), tile_.parts); }
  // Returns a row among the rows of all warps, one warp after the other. `i` is the number among
  // the thread's rows.
  ir::Expr RowAt(ir::Expr warp, ir::Expr i) {
    return write_.Add(write_.Add(write_.Mul(warp, tile_.rows), write_.Mul(i, kThreadRows)),
                      write_.Div(Lane(), kThreadColumns));
  }
  // Returns the row in the block.
  ir::Expr RowOf(ir::Expr i) { return RowAt(write_.Div(thread_, kWarp * tile_.parts), i); }
  // Returns the row counted once for each part of the keys.
  ir::Expr RowOfWarp(ir::Expr i) { return RowAt(write_.Div(thread_, kWarp), i); }
  ir::Expr ColumnOf(ir::Expr group, ir::Expr neighbour) {
    return write_.Add(write_.Add(write_.Mul(group, kColumns),
                                 write_.Mul(write_.Mod(Lane(), kThreadColumns), kNeighbours)),
                      neighbour);
  }
  // Returns the key in the tile; `in_part` is the key in the part.
  ir::Expr KeyOf(ir::Expr in_part) {
    return write_.Add(write_.Mul(Part(), keys_of_part()), in_part);
  }

  // Returns the number of the group of columns that is the thread's `group`-th one to store.
  ir::Expr StoredGroup(ir::Expr group) {
    return write_.Add(write_.Mul(group, tile_.parts), Part());
  }

  // ---- statements
  ir::Stmt BodyOfBlock();
  ir::Stmt BodyOfThread();
  ir::Stmt Copy(const SharedTile& tile, bool is_async);
  ir::Stmt UseScores();
  ir::Stmt VisitKeys();
  ir::Stmt VisitOneTile();
  ir::Stmt VisitInTurns();
  ir::Stmt VisitAhead();
  ir::Stmt VisitOverlapped();
  ir::Stmt CopyToRing(const SharedTile& tile, ir::Expr key_tile);
  ir::Stmt CopyGroup(ir::Expr key_tile);
  ir::Stmt InRing(ir::Stmt stmt, const SharedTile& tile, ir::Expr key_tile);
  void SetKeyTile(ir::Expr tile) {
    if (is_split()) tile = write_.Add(write_.Mul(split_, key_tiles()), tile);
    first_key_ = write_.Mul(tile, tile_.keys);
  }
  // Sets the block's first row and its problem.
  void SetBlock(ir::Expr block);
  ir::Stmt SkipUnseenTile(ir::Stmt visit, ir::Expr seen);
  ir::Stmt ComputeScores();
  ir::Stmt ScoresToExponentials();
  ir::Stmt ComputeLogits();
  ir::Stmt LogitsOfTile(bool is_whole);
  ir::Stmt LogitsOfWholeTile();
  ir::Stmt UpdateMaximum();
  ir::Stmt ComputeExponentials();
  ir::Stmt StoreWeights();
  ir::Stmt RescaleSums();
  ir::Stmt AddValues();
  ir::Stmt Results();
  ir::Stmt StoreResults();
  ir::Stmt StorePartialResults();
  ir::Stmt CombineParts();
  // Stores an element of the output. `row` is counted in the block.
  ir::Stmt StoreResult(ir::Expr row, ir::Expr column, ir::Expr sum, ir::Expr inverse,
                       ir::Expr total, ir::Expr inside);
  // Neighbouring columns are neighbours of the output, and pairs of them end with the row.
  bool HasPairsOfColumns() const;

  // ---- blocks that share the keys
  void MakeSplitBuffers();
  bool is_split() const { return tile_.splits > 1; }
  std::vector<int32_t> SplitRegisters() const {
    return {join_highest_, join_factor_, join_total_, join_sums_};
  }
  // Returns an element of a buffer that has one for each of these blocks.
  ir::Expr AtSplit(int32_t slot, ir::Expr split, std::initializer_list<ir::Expr> at) {
    return write_.Load(slot, PlaceOfSplit(split, at));
  }
  std::vector<ir::Expr> PlaceOfSplit(ir::Expr split, std::initializer_list<ir::Expr> at) const;
  // Stores what the block found for its keys.
  ir::Stmt StoreSplit();
  // Joins what all blocks found, for two neighbouring columns of a row of the block. `element`
  // numbers these pairs.
  ir::Stmt JoinSplits(ir::Expr element);
  ir::Stmt ForSplits(absl::FunctionRef<ir::Stmt(ir::Expr)> body);
  ir::Stmt AddSplits(ir::Expr row, ir::Expr first_column);
  ir::Stmt StoreJoined(ir::Expr row, ir::Expr first_column);
  ir::Stmt JoinInCluster();
  ir::Kernel JoiningKernel();
  // Calls body(i, group, neighbour) for all elements of a thread.
  ir::Stmt ForTile(int64_t groups, ir::LoopKind innermost,
                   absl::FunctionRef<ir::Stmt(ir::Expr, ir::Expr, ir::Expr)> body);
  ir::Stmt ForRows(absl::FunctionRef<ir::Stmt(ir::Expr)> body);
  // for k: slot[i, group, neighbour] += term
  ir::Stmt AddTerms(int32_t slot, int32_t stage, int64_t terms, int64_t groups,
                    absl::FunctionRef<ir::Expr(ir::Expr, ir::Expr, ir::Expr, ir::Expr)> term);
  // Combines the values that the four threads of each row have in registers, so that all four have
  // the result. `of_threads` is in shared memory, with an element for each thread and row.
  ir::Stmt OverRow(int32_t registers, int32_t of_threads, int32_t stage, ir::Op combine);
  ir::Expr At(int32_t slot, std::initializer_list<ir::Expr> at) {
    return write_.Load(slot, std::vector<ir::Expr>(at));
  }
  ir::Stmt Set(int32_t slot, int32_t stage, std::initializer_list<ir::Expr> at, ir::Expr value) {
    return write_.Store(slot, stage, std::vector<ir::Expr>(at), value);
  }
  ir::Expr Float(double value) { return pool().Float(value, ir::kFloat32); }
  // Returns 2 to the power of (logit - highest) * log2(e).
  ir::Expr Power(ir::Expr logit, ir::Expr highest);
  // Initial maximum of a row that has seen no key yet, or only keys of infinitely low logits. It is
  // finite, so that a difference with another maximum, or with itself, is a number.
  double LowestLogit() const;
  // Returns the condition that any row of the block sees a key of the tile. Null: every tile is
  // visited.
  ir::Expr IsSeen();
  // Returns the last tile of keys that a row of the block sees.
  ir::Expr LastSeen();
  // Returns the condition that all keys of the tile exist and are seen by all rows of the block.
  // Null: always.
  ir::Expr IsWhole();

  ir::ExprPool& pool() { return *program_.pool; }
  int64_t extent(int32_t var) const { return chain_.extent(var); }
  int64_t block_rows() const { return int64_t{tile_.rows} * tile_.warps; }
  int64_t threads() const { return kWarp * tile_.warps * tile_.parts; }
  int64_t keys_of_part() const { return tile_.keys / tile_.parts; }
  int64_t rows_of_thread() const { return tile_.rows / kThreadRows; }
  int64_t key_groups() const { return keys_of_part() / kColumns; }
  // Rows that are swizzled have a multiple of 32 bytes.
  int64_t value_groups() const {
    return CeilDiv(extent(chain_.column), is_warpgroup() ? kTerms : kColumns) *
           (is_warpgroup() ? kTerms / kColumns : 1);
  }
  // Number of groups of the columns that a thread stores.
  int64_t stored_groups() const { return CeilDiv(value_groups(), tile_.parts); }
  bool is_warpgroup() const { return tile_.matrix_unit == ir::MatrixUnitScope::kWarpgroup; }
  int64_t terms() const { return RoundUp(extent(chain_.depth), kTerms); }
  int64_t row_tiles() const { return CeilDiv(extent(chain_.row), block_rows()); }
  int64_t blocks() const;
  int64_t all_key_tiles() const { return CeilDiv(extent(chain_.key), tile_.keys); }
  // Number of tiles of keys that a block visits.
  int64_t key_tiles() const { return CeilDiv(all_key_tiles(), tile_.splits); }
  // The last of the blocks that share the keys has fewer tiles.
  bool has_fewer_tiles() const { return key_tiles() * tile_.splits != all_key_tiles(); }
  // A visited tile may have keys beyond the end. All blocks of a cluster visit as many tiles as the
  // others, because the barriers of its blocks are reached by all of them.
  bool has_keys_beyond() const {
    return extent(chain_.key) % tile_.keys != 0 || (tile_.is_cluster && has_fewer_tiles());
  }
  // Rows of a block that exist, and columns, rounded up, of buffers for each split.
  int64_t split_rows() const { return std::min(block_rows(), extent(chain_.row)); }
  int64_t split_columns() const { return value_groups() * kColumns; }
  int64_t split_pairs() const { return CeilDiv(extent(chain_.column), kNeighbours); }
  int64_t ring() const { return std::min<int64_t>(tile_.depth, key_tiles()); }

  const schedule::State& state_;
  const dag::Dag& dag_;
  const dag::SoftmaxChain chain_;
  const schedule::OnlineTile tile_;

  ir::Program program_;
  LoopWriter write_;
  // Buffers of the arguments, by operator.
  std::vector<int32_t> slots_;
  Names stage_names_;

  SharedTile query_, keys_, values_;
  int32_t scores_ = -1, highest_ = -1, new_highest_ = -1, total_ = -1, sums_ = -1, factor_ = -1;
  // These buffers are in shared memory.
  int32_t weights_ = -1, highest_of_threads_ = -1, total_of_threads_ = -1;
  // Buffers for each part of the keys. -1: there is only one part. part_factor_ is in registers.
  int32_t highest_of_parts_ = -1, total_of_parts_ = -1, sums_of_parts_ = -1, part_factor_ = -1;
  // Buffers for each block that shares the keys, and registers of a thread that joins them. -1: no
  // blocks share them.
  int32_t highest_of_splits_ = -1, total_of_splits_ = -1, sums_of_splits_ = -1;
  int32_t join_highest_ = -1, join_factor_ = -1, join_total_ = -1, join_sums_ = -1;
  bool has_inputs_in_logit_ = false;
  // True if every row has a finite logit in the first tile of keys of each part whenever scores are
  // finite, no logit is near the largest number, and weights have 16 bits. A power is then computed
  // by one multiply-add, whose error grows with the logit and is less than the rounding of the
  // weights.
  bool is_fast_ = false;
  // Set if is_fast_ and the logit is a score times a positive number. Registers then hold the
  // score, the maximum is one of scores, and the number is in the multiply-add.
  ir::Expr scaled_ = nullptr;
  double scale_ = 1;

  // Values for the statement that is written.
  ir::Expr thread_ = nullptr;
  // Number of the block, counted once for all that share the keys.
  ir::Expr block_ = nullptr;
  // Number of the block among those that share the keys.
  ir::Expr split_ = nullptr;
  // First row of the block.
  ir::Expr first_row_ = nullptr;
  // First key of the tile.
  ir::Expr first_key_ = nullptr;
  // Variable of the loop over tiles of keys.
  int32_t key_tile_ = -1;
  // Values of the chain's variables, or null.
  std::vector<ir::Expr> vars_;
};

}  // namespace kiln::lower
