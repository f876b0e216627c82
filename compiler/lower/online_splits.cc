#include <algorithm>

#include "compiler/lower/online_builder.h"

namespace kiln::lower {

using ir::Expr;
using ir::Stmt;

namespace {

// Threads of a block that joins results.
constexpr int64_t kJoiningThreads = 64;

}  // namespace

// Buffers of a cluster begin with the block in the cluster. Those in global memory begin with the
// block, counted once for all that share the keys.
void OnlineBuilder::MakeSplitBuffers() {
  const auto buffer = [&](std::string_view name, std::vector<int64_t> shape) {
    if (!tile_.is_cluster) shape.insert(shape.begin(), blocks());
    return NewBuffer(name, ir::kFloat32, std::move(shape),
                     tile_.is_cluster ? ir::Scope::kCluster : ir::Scope::kWorkspace);
  };
  highest_of_splits_ = buffer("highest_of_splits", {tile_.splits, split_rows()});
  total_of_splits_ = buffer("total_of_splits", {tile_.splits, split_rows()});
  sums_of_splits_ = buffer("sums_of_splits", {tile_.splits, split_rows(), split_columns()});
  join_highest_ = NewRegisters("join_highest", {1});
  join_factor_ = NewRegisters("join_factor", {1});
  join_total_ = NewRegisters("join_total", {1});
  join_sums_ = NewRegisters("join_sums", {kNeighbours});
}

std::vector<Expr> OnlineBuilder::PlaceOfSplit(Expr split, std::initializer_list<Expr> at) const {
  std::vector<Expr> place;
  if (!tile_.is_cluster) place.push_back(block_);
  place.push_back(split);
  place.insert(place.end(), at);
  return place;
}

Stmt OnlineBuilder::StoreSplit() {
  const int32_t stage = chain_.total;
  const int32_t highest = tile_.parts > 1 ? new_highest_ : highest_;
  const auto set = [&](int32_t slot, std::initializer_list<Expr> at, Expr value) {
    return write_.Store(slot, stage, PlaceOfSplit(split_, at), value);
  };
  const auto if_kept = [&](Expr row, Stmt body) {
    const bool is_whole = split_rows() == block_rows();
    return write_.If(is_whole ? nullptr : write_.Less(row, split_rows()), body);
  };
  // Only one of the threads of a row stores these.
  Expr is_first = write_.Less(write_.Mod(Lane(), kThreadColumns), 1);
  if (tile_.parts > 1) is_first = write_.And(is_first, write_.Less(Part(), 1));
  const Stmt of_rows =
      write_.If(is_first, ForRows([&](Expr i) {
                  const Expr row = RowOf(i);
                  return if_kept(row, write_.Seq({set(highest_of_splits_, {row}, At(highest, {i})),
                                                  set(total_of_splits_, {row}, At(total_, {i}))}));
                }));
  const bool is_whole = value_groups() % tile_.parts == 0;
  const Stmt of_sums =
      ForTile(stored_groups(), ir::LoopKind::kVectorized, [&](Expr i, Expr group, Expr side) {
        const Expr row = RowOf(i), stored = StoredGroup(group);
        const Stmt store =
            set(sums_of_splits_, {row, ColumnOf(stored, side)}, At(sums_, {i, group, side}));
        return if_kept(row,
                       write_.If(is_whole ? nullptr : write_.Less(stored, value_groups()), store));
      });
  return write_.Seq({of_rows, of_sums});
}

Stmt OnlineBuilder::ForSplits(absl::FunctionRef<Stmt(Expr)> body) {
  return write_.Loop("split", tile_.splits, ir::LoopKind::kUnrolled, body);
}

Stmt OnlineBuilder::AddSplits(Expr row, Expr first_column) {
  const int32_t stage = chain_.total;
  const Expr zero = write_.Int(0);
  const auto add = [&](int32_t sum, Expr at, Expr value) {
    return Set(sum, stage, {at},
               pool().Add(At(sum, {at}), pool().Mul(value, At(join_factor_, {zero}))));
  };
  return ForSplits([&](Expr split) {
    const Expr factor = Power(AtSplit(highest_of_splits_, split, {row}), At(join_highest_, {zero}));
    const Stmt sums = write_.Loop("side", kNeighbours, ir::LoopKind::kVectorized, [&](Expr side) {
      const Expr column = write_.Add(first_column, side);
      return add(join_sums_, side, AtSplit(sums_of_splits_, split, {row, column}));
    });
    return write_.Seq({Set(join_factor_, stage, {zero}, factor),
                       add(join_total_, zero, AtSplit(total_of_splits_, split, {row})), sums});
  });
}

Stmt OnlineBuilder::StoreJoined(Expr row, Expr first_column) {
  const Expr zero = write_.Int(0);
  const bool has_pairs = HasPairsOfColumns();
  const ir::LoopKind kind = has_pairs ? ir::LoopKind::kVectorized : ir::LoopKind::kSerial;
  return write_.Loop("side", kNeighbours, kind, [&](Expr side) {
    const Expr column = write_.Add(first_column, side);
    Expr inside = nullptr;
    if (extent(chain_.row) % block_rows() != 0 && row_tiles() > 1)
      inside = write_.Less(write_.Add(first_row_, row), extent(chain_.row));
    if (extent(chain_.column) % kNeighbours != 0)
      inside = write_.And(inside, write_.Less(column, extent(chain_.column)));
    return StoreResult(row, column, At(join_sums_, {side}), At(join_factor_, {zero}),
                       At(join_total_, {zero}), inside);
  });
}

Stmt OnlineBuilder::JoinSplits(Expr element) {
  const int32_t stage = chain_.total;
  const Expr row = write_.Div(element, split_pairs()), zero = write_.Int(0),
             column = write_.Mul(write_.Mod(element, split_pairs()), kNeighbours);
  const Stmt highest = ForSplits([&](Expr split) {
    return Set(join_highest_, stage, {zero},
               pool().Binary(ir::Op::kMax, At(join_highest_, {zero}),
                             AtSplit(highest_of_splits_, split, {row})));
  });
  const Stmt zeros = write_.Loop("side", kNeighbours, ir::LoopKind::kVectorized, [&](Expr side) {
    return Set(join_sums_, stage, {side}, Float(0));
  });
  const Stmt invert =
      Set(join_factor_, stage, {zero}, pool().Div(Float(1), At(join_total_, {zero})));
  return write_.Seq({Set(join_highest_, stage, {zero}, Float(LowestLogit())), highest,
                     Set(join_total_, stage, {zero}, Float(0)), zeros, AddSplits(row, column),
                     invert, StoreJoined(row, column)});
}

// The threads of all blocks share out the elements. The last barrier keeps the shared memory of
// each block until the others have read it.
Stmt OnlineBuilder::JoinInCluster() {
  const int64_t elements = split_rows() * split_pairs(), all = threads() * tile_.splits;
  const Stmt join = write_.Loop("turn", CeilDiv(elements, all), [&](Expr turn) {
    const Expr element =
        write_.Add(write_.Mul(turn, all), write_.Add(write_.Mul(split_, threads()), thread_));
    const bool is_whole = elements % all == 0;
    return write_.If(is_whole ? nullptr : write_.Less(element, elements), JoinSplits(element));
  });
  const Stmt barrier = ir::MakeClusterBarrier(pool());
  return write_.Seq({barrier, join, barrier});
}

ir::Kernel OnlineBuilder::JoiningKernel() {
  const int64_t of_block = split_rows() * split_pairs(), elements = blocks() * of_block;
  ir::Kernel kernel;
  kernel.name = Identifier(dag_.op(chain_.output).name());
  kernel.block[0] = std::min(elements, kJoiningThreads);
  kernel.grid[0] = CeilDiv(elements, kernel.block[0]);
  kernel.body = write_.Loop("joined_block", kernel.grid[0], ir::LoopKind::kBlockX, [&](Expr block) {
    return write_.Loop("joiner", kernel.block[0], ir::LoopKind::kThreadX, [&](Expr thread) {
      const Expr element = write_.Add(write_.Mul(block, kernel.block[0]), thread);
      SetBlock(write_.Div(element, of_block));
      const Stmt join = JoinSplits(write_.Mod(element, of_block));
      const bool is_whole = elements % kernel.block[0] == 0;
      return write_.Alloc(SplitRegisters(),
                          write_.If(is_whole ? nullptr : write_.Less(element, elements), join));
    });
  });
  return kernel;
}

}  // namespace kiln::lower
