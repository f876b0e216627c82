#include "compiler/lower/online_softmax.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "compiler/dag/softmax_chain.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/substitution.h"
#include "compiler/lower/fetch_ahead.h"
#include "compiler/lower/online_builder.h"

namespace kiln::lower {

using ir::Expr;
using ir::Stmt;

Stmt OnlineBuilder::ComputeScores() {
  const Stmt init =
      ForTile(key_groups(), ir::LoopKind::kSerial, [&](Expr i, Expr group, Expr side) {
        return Set(scores_, chain_.scores, {i, group, side}, Float(0));
      });
  const Stmt add = AddTerms(
      scores_, chain_.scores, terms(), key_groups(), [&](Expr i, Expr group, Expr side, Expr k) {
        const auto query = PlaceIn(query_, chain_.row, RowOf(i), k);
        const auto key = PlaceIn(keys_, chain_.key, KeyOf(ColumnOf(group, side)), k);
        return Written(chain_.score_term, {{chain_.query, write_.Load(query_.slot, query)},
                                           {chain_.keys, write_.Load(keys_.slot, key)}});
      });
  return write_.Seq({init, add});
}

Stmt OnlineBuilder::ScoresToExponentials() {
  return write_.Seq({ComputeLogits(), UpdateMaximum(), ComputeExponentials()});
}

// Uses the stage of the maximum, because that stage has no products for matrix units.
Stmt OnlineBuilder::LogitsOfTile(bool is_whole) {
  const Expr logit = is_whole && chain_.seen_logit != nullptr ? chain_.seen_logit : chain_.logit;
  const Expr score = LoadOf(chain_.scores);
  return ForTile(key_groups(), ir::LoopKind::kSerial, [&](Expr i, Expr group, Expr side) {
    const Expr row = write_.Add(first_row_, RowOf(i)),
               key = write_.Add(first_key_, KeyOf(ColumnOf(group, side)));
    vars_[static_cast<size_t>(chain_.row)] = row;
    vars_[static_cast<size_t>(chain_.key)] = key;
    const Expr own = At(scores_, {i, group, side});
    Expr value = Written(logit, {{score, own}, {scaled_, own}});
    if (!is_whole) {
      Expr inside = nullptr;
      if (has_keys_beyond()) inside = write_.Less(key, extent(chain_.key));
      if (has_inputs_in_logit_ && extent(chain_.row) % block_rows() != 0)
        inside = write_.And(inside, write_.Less(row, extent(chain_.row)));
      if (inside != nullptr)
        value = pool().If(inside, value, Float(-std::numeric_limits<double>::infinity()));
    }
    return Set(scores_, chain_.maximum, {i, group, side}, value);
  });
}

// Emits nothing if the logits are in the registers already.
Stmt OnlineBuilder::LogitsOfWholeTile() {
  const Expr logit = chain_.seen_logit != nullptr ? chain_.seen_logit : chain_.logit;
  if (logit->op == ir::Op::kLoad || logit == scaled_) return write_.Seq({});
  return LogitsOfTile(/*is_whole=*/true);
}

Stmt OnlineBuilder::ComputeLogits() {
  const Expr whole = IsWhole();
  if (whole == nullptr) return LogitsOfWholeTile();
  const Stmt all = LogitsOfWholeTile();
  return write_.Seq({ir::IsEmpty(all) ? all : write_.If(whole, all),
                     write_.If(pool().Not(whole), LogitsOfTile(/*is_whole=*/false))});
}

Stmt OnlineBuilder::UpdateMaximum() {
  const int32_t stage = chain_.maximum;
  const Stmt own =
      write_.Seq({ForRows([&](Expr i) { return Set(new_highest_, stage, {i}, At(highest_, {i})); }),
                  ForTile(key_groups(), ir::LoopKind::kSerial, [&](Expr i, Expr group, Expr side) {
                    return Set(new_highest_, stage, {i},
                               pool().Binary(ir::Op::kMax, At(new_highest_, {i}),
                                             At(scores_, {i, group, side})));
                  })});
  const Stmt take = ForRows([&](Expr i) {
    const Expr now = At(new_highest_, {i});
    return write_.Seq(
        {Set(factor_, stage, {i}, Power(At(highest_, {i}), now)), Set(highest_, stage, {i}, now)});
  });
  return write_.Seq({own, OverRow(new_highest_, highest_of_threads_, stage, ir::Op::kMax), take});
}

Stmt OnlineBuilder::ComputeExponentials() {
  const int32_t stage = chain_.total;
  const Stmt rescale = ForRows([&](Expr i) {
    return Set(total_, stage, {i}, pool().Mul(At(total_, {i}), At(factor_, {i})));
  });
  const Stmt exponentials =
      ForTile(key_groups(), ir::LoopKind::kSerial, [&](Expr i, Expr group, Expr side) {
        const Expr score = At(scores_, {i, group, side});
        return write_.Seq(
            {Set(scores_, stage, {i, group, side}, Power(score, At(highest_, {i}))),
             Set(total_, stage, {i},
                 pool().Add(At(total_, {i}),
                            Written(chain_.total_term, {{chain_.exponential, score}})))});
      });
  return write_.Seq({rescale, exponentials});
}

Stmt OnlineBuilder::StoreWeights() {
  const Stmt weights =
      ForTile(key_groups(), ir::LoopKind::kVectorized, [&](Expr i, Expr group, Expr side) {
        const Expr score = At(scores_, {i, group, side});
        return Set(weights_, chain_.total, {RowOf(i), KeyOf(ColumnOf(group, side))},
                   Written(chain_.weight, {{chain_.exponential, score}}));
      });
  return write_.Seq({weights, ir::MakeWarpBarrier(pool())});
}

Stmt OnlineBuilder::RescaleSums() {
  return ForTile(value_groups(), ir::LoopKind::kSerial, [&](Expr i, Expr group, Expr side) {
    return Set(sums_, chain_.total, {i, group, side},
               pool().Mul(At(sums_, {i, group, side}), At(factor_, {i})));
  });
}

Stmt OnlineBuilder::AddValues() {
  return AddTerms(
      sums_, chain_.weighted, keys_of_part(), value_groups(),
      [&](Expr i, Expr group, Expr side, Expr k) {
        const auto value = PlaceIn(values_, chain_.key, KeyOf(k), ColumnOf(group, side));
        return Written(chain_.value_term, {{chain_.weight, At(weights_, {RowOf(i), KeyOf(k)})},
                                           {chain_.values, write_.Load(values_.slot, value)}});
      });
}

Stmt OnlineBuilder::UseScores() {
  return write_.Seq({ScoresToExponentials(), StoreWeights(), RescaleSums(), AddValues()});
}

// Visits all tiles of keys, from the first to the last one that is seen.
Stmt OnlineBuilder::VisitKeys() {
  if (key_tiles() == 1) return VisitOneTile();
  key_tile_ = ir::AddVar(program_, "key_tile", key_tiles());
  if (tile_.depth == 1) return VisitInTurns();
  return is_warpgroup() ? VisitOverlapped() : VisitAhead();
}

// The values arrive while the scores are computed.
Stmt OnlineBuilder::VisitOneTile() {
  SetKeyTile(write_.Int(0));
  const Stmt commit = ir::MakeCommit(pool());
  return write_.Seq({Copy(keys_, /*is_async=*/true), commit, Copy(values_, /*is_async=*/true),
                     commit, ir::MakeBarrier(pool(), 1), ComputeScores(), ScoresToExponentials(),
                     StoreWeights(), ir::MakeBarrier(pool(), 0), AddValues()});
}

// Holds one tile of keys and one of values. The values arrive while the scores are computed, and
// the next keys arrive while the sums are computed.
Stmt OnlineBuilder::VisitInTurns() {
  const Stmt commit = ir::MakeCommit(pool()), barrier = ir::MakeBarrier(pool(), 0);
  const Expr tile = pool().Var(key_tile_);
  SetKeyTile(write_.Int(0));
  const Stmt first_keys = Copy(keys_, /*is_async=*/true);
  SetKeyTile(write_.Add(tile, 1));
  const Expr more = write_.And(write_.Less(tile, key_tiles() - 1), IsSeen());
  const Stmt next_keys = write_.If(more, Copy(keys_, /*is_async=*/true));
  SetKeyTile(tile);
  const Stmt body = write_.Seq({barrier, Copy(values_, /*is_async=*/true), commit, ComputeScores(),
                                barrier, next_keys, commit, UseScores()});
  return write_.Seq({first_keys, commit,
                     ir::MakeFor(pool(), key_tile_, key_tiles(), ir::LoopKind::kSerial,
                                 write_.If(IsSeen(), body))});
}

Stmt OnlineBuilder::VisitAhead() {
  SetKeyTile(pool().Var(key_tile_));
  const Stmt fetch =
      write_.Seq({Copy(keys_, /*is_async=*/false), Copy(values_, /*is_async=*/false)});
  const Stmt work = write_.Seq({ComputeScores(), UseScores()});
  const Expr seen = IsSeen();
  const std::vector<FetchedSlot> slots = {{keys_.slot, keys_.may_be_async()},
                                          {values_.slot, values_.may_be_async()}};
  const CopyVar copy_var = [&](int32_t var, int64_t count) {
    const std::string name = program_.vars[static_cast<size_t>(var)].name;
    return ir::AddVar(program_, name, count);
  };
  const Stmt visit = FetchAhead(program_, {{key_tile_, key_tiles()}}, slots,
                                {.depth = tile_.depth, .asynchronous = true},
                                write_.If(seen, fetch), write_.If(seen, work), copy_var);
  return seen == nullptr ? visit : SkipUnseenTile(visit, seen);
}

Stmt OnlineBuilder::InRing(Stmt stmt, const SharedTile& tile, Expr key_tile) {
  ir::Substitution names;
  names.SetFirstIndex(tile.slot, write_.Mod(key_tile, ring()));
  return ir::Substitute(pool(), stmt, names);
}

// Copies nothing behind the last tile that is seen.
Stmt OnlineBuilder::CopyToRing(const SharedTile& tile, Expr key_tile) {
  SetKeyTile(key_tile);
  const Stmt copy = write_.If(IsSeen(), Copy(tile, /*is_async=*/true));
  return InRing(write_.If(write_.Less(key_tile, key_tiles()), copy), tile, key_tile);
}

// The keys of a tile arrive with the values of the previous tile.
Stmt OnlineBuilder::CopyGroup(Expr key_tile) {
  return write_.Seq({CopyToRing(keys_, key_tile), CopyToRing(values_, write_.Add(key_tile, -1)),
                     ir::MakeCommit(pool())});
}

// Units of four warps work beside the threads: scores of a tile are computed together with the sums
// of the previous tile, which go on while the threads make weights of the scores.
Stmt OnlineBuilder::VisitOverlapped() {
  std::vector<Stmt> stmts;
  const Expr first = write_.Int(0);
  const auto scores_of = [&](Expr tile) {
    SetKeyTile(tile);
    return InRing(ComputeScores(), keys_, tile);
  };
  const auto values_of = [&](Expr tile) { return InRing(AddValues(), values_, tile); };

  SetKeyTile(first);
  stmts = {InRing(Copy(keys_, /*is_async=*/true), keys_, first), ir::MakeCommit(pool())};
  for (int64_t tile = 1; tile < ring(); ++tile) stmts.push_back(CopyGroup(write_.Int(tile)));
  const int ahead = static_cast<int>(ring()) - 1;
  stmts.insert(stmts.end(), {ir::MakeBarrier(pool(), ahead), scores_of(first),
                             ScoresToExponentials(), StoreWeights()});

  key_tile_ = ir::AddVar(program_, "key_tile", key_tiles() - 1);
  const Expr before = pool().Var(key_tile_), tile = write_.Add(before, 1);
  const Stmt products = write_.Seq({scores_of(tile), values_of(before)});
  const Stmt copies = CopyGroup(write_.Add(tile, ahead));
  SetKeyTile(tile);
  const Stmt body = write_.Seq({ir::MakeBarrier(pool(), ahead - 1), products, copies,
                                ScoresToExponentials(), RescaleSums(), StoreWeights()});
  stmts.push_back(ir::MakeFor(pool(), key_tile_, key_tiles() - 1, ir::LoopKind::kSerial,
                              write_.If(IsSeen(), body)));
  stmts.insert(stmts.end(), {ir::MakeBarrier(pool(), 0), values_of(LastSeen())});
  for (const SharedTile* const copied : {&keys_, &values_}) {
    std::vector<int64_t>& shape = program_.buffers[static_cast<size_t>(copied->slot)].shape;
    shape.insert(shape.begin(), ring());
  }
  return write_.Seq(stmts);
}

// Leaves only tests in the iterations behind the last tile that is seen.
Stmt OnlineBuilder::SkipUnseenTile(Stmt visit, Expr seen) {
  std::vector<Stmt> parts(visit->children().begin(), visit->children().end());
  Stmt& loop = parts.back();
  if (loop->kind != ir::StmtKind::kFor) return visit;
  ir::Substitution names;
  names.SetVar(key_tile_, pool().Var(loop->var));
  loop = ir::WithBody(pool(), loop, write_.If(pool().Substitute(seen, names), loop->body()));
  return write_.Seq(parts);
}

Stmt OnlineBuilder::StoreResults() {
  const ir::LoopKind kind = HasPairsOfColumns() ? ir::LoopKind::kVectorized : ir::LoopKind::kSerial;
  return ForTile(stored_groups(), kind, [&](Expr i, Expr group, Expr side) {
    const Expr row = RowOf(i), column = ColumnOf(StoredGroup(group), side);
    Expr inside = nullptr;
    if (extent(chain_.row) % block_rows() != 0)
      inside = write_.Less(write_.Add(first_row_, row), extent(chain_.row));
    if (extent(chain_.column) != stored_groups() * tile_.parts * kColumns)
      inside = write_.And(inside, write_.Less(column, extent(chain_.column)));
    return StoreResult(row, column, At(sums_, {i, group, side}), At(factor_, {i}), At(total_, {i}),
                       inside);
  });
}

bool OnlineBuilder::HasPairsOfColumns() const {
  return extent(chain_.column) % kNeighbours == 0 &&
         chain_.column + 1 == static_cast<int32_t>(dag_.op(chain_.output).axes().size());
}

Stmt OnlineBuilder::StoreResult(Expr row, Expr column, Expr sum, Expr inverse, Expr of_row,
                                Expr inside) {
  const Expr weighted = LoadOf(chain_.weighted), total = LoadOf(chain_.total);
  // One division serves a whole row.
  const Expr quotient = chain_.pool->Div(weighted, total);
  vars_[static_cast<size_t>(chain_.row)] = write_.Add(first_row_, row);
  vars_[static_cast<size_t>(chain_.column)] = column;
  const Expr value = Written(
      chain_.result, {{quotient, pool().Mul(sum, inverse)}, {weighted, sum}, {total, of_row}});
  const auto axes = static_cast<std::ptrdiff_t>(dag_.op(chain_.output).axes().size());
  const std::vector<Expr> at(vars_.begin(), vars_.begin() + axes);
  return write_.If(
      inside, write_.Store(slots_[static_cast<size_t>(chain_.output)], chain_.output, at, value));
}

// Stores the values that the warps of each part have for their rows.
Stmt OnlineBuilder::StorePartialResults() {
  const int32_t stage = chain_.total;
  // Only one of the threads of a row stores these.
  const Stmt of_rows = write_.If(
      write_.Less(write_.Mod(Lane(), kThreadColumns), 1), ForRows([&](Expr i) {
        return write_.Seq({Set(highest_of_parts_, stage, {RowOf(i), Part()}, At(highest_, {i})),
                           Set(total_of_parts_, stage, {RowOf(i), Part()}, At(total_, {i}))});
      }));
  const Stmt of_sums =
      ForTile(value_groups(), ir::LoopKind::kVectorized, [&](Expr i, Expr group, Expr side) {
        return Set(sums_of_parts_, stage, {Part(), RowOf(i), ColumnOf(group, side)},
                   At(sums_, {i, group, side}));
      });
  return write_.Seq({of_rows, of_sums, ir::MakeBarrier(pool(), 0)});
}

// Combines all parts of a row, for the columns that the thread stores.
Stmt OnlineBuilder::CombineParts() {
  const int32_t stage = chain_.total;
  const auto over_parts = [&](ir::Op combine, absl::FunctionRef<Expr(Expr)> of) {
    Expr all = of(write_.Int(0));
    for (int32_t part = 1; part < tile_.parts; ++part)
      all = pool().Binary(combine, all, of(write_.Int(part)));
    return all;
  };
  const Stmt of_rows = ForRows([&](Expr i) {
    const Expr row = RowOf(i);
    const Expr highest =
        over_parts(ir::Op::kMax, [&](Expr part) { return At(highest_of_parts_, {row, part}); });
    const Stmt factors = write_.Loop("part", tile_.parts, [&](Expr part) {
      return Set(part_factor_, stage, {i, part},
                 Power(At(highest_of_parts_, {row, part}), At(new_highest_, {i})));
    });
    const Expr total = over_parts(ir::Op::kAdd, [&](Expr part) {
      return pool().Mul(At(total_of_parts_, {row, part}), At(part_factor_, {i, part}));
    });
    return write_.Seq(
        {Set(new_highest_, stage, {i}, highest), factors, Set(total_, stage, {i}, total)});
  });
  const Stmt of_sums =
      ForTile(stored_groups(), ir::LoopKind::kSerial, [&](Expr i, Expr group, Expr side) {
        const Expr stored = StoredGroup(group);
        const Expr sum = over_parts(ir::Op::kAdd, [&](Expr part) {
          return pool().Mul(At(sums_of_parts_, {part, RowOf(i), ColumnOf(stored, side)}),
                            At(part_factor_, {i, part}));
        });
        const bool is_whole = value_groups() % tile_.parts == 0;
        return write_.If(is_whole ? nullptr : write_.Less(stored, value_groups()),
                         Set(sums_, stage, {i, group, side}, sum));
      });
  return write_.Seq({of_rows, of_sums});
}

Stmt OnlineBuilder::Results() {
  const Stmt total = OverRow(total_, total_of_threads_, chain_.total, ir::Op::kAdd);
  const Stmt invert = ForRows([&](Expr i) {
    return Set(factor_, chain_.total, {i}, pool().Div(Float(1), At(total_, {i})));
  });
  std::vector<Stmt> stmts = {total};
  if (tile_.parts > 1) stmts.insert(stmts.end(), {StorePartialResults(), CombineParts()});
  if (!is_split()) {
    stmts.insert(stmts.end(), {invert, StoreResults()});
  } else {
    stmts.push_back(StoreSplit());
    if (tile_.is_cluster) stmts.push_back(JoinInCluster());
  }
  return write_.Seq(stmts);
}

Stmt OnlineBuilder::BodyOfThread() {
  const double lowest = LowestLogit();
  const Stmt init = write_.Seq(
      {ForRows([&](Expr i) {
         return write_.Seq({Set(highest_, chain_.maximum, {i}, Float(lowest)),
                            Set(total_, chain_.total, {i}, Float(0))});
       }),
       ForTile(value_groups(), ir::LoopKind::kSerial, [&](Expr i, Expr group, Expr side) {
         return Set(sums_, chain_.weighted, {i, group, side}, Float(0));
       })});
  const Stmt query = Copy(query_, /*is_async=*/true);
  const Stmt visit = VisitKeys();
  std::vector<int32_t> registers = {highest_, new_highest_, factor_, total_, sums_, scores_};
  if (tile_.parts > 1) registers.push_back(part_factor_);
  if (tile_.is_cluster)
    for (const int32_t slot : SplitRegisters()) registers.push_back(slot);
  return write_.Alloc(registers, write_.Seq({query, init, visit, Results()}));
}

Stmt OnlineBuilder::BodyOfBlock() {
  std::vector<int32_t> shared = {query_.slot, keys_.slot,          values_.slot,
                                 weights_,    highest_of_threads_, total_of_threads_};
  if (tile_.parts > 1)
    shared.insert(shared.end(), {highest_of_parts_, total_of_parts_, sums_of_parts_});
  if (tile_.is_cluster)
    shared.insert(shared.end(), {highest_of_splits_, total_of_splits_, sums_of_splits_});
  const auto of_threads = [&] {
    return write_.Loop("thread", threads(), ir::LoopKind::kThreadX, [&](Expr thread) {
      thread_ = thread;
      return BodyOfThread();
    });
  };
  const int64_t in_grid = tile_.is_cluster ? 1 : tile_.splits;
  return write_.Loop("block", blocks() * in_grid, ir::LoopKind::kBlockX, [&](Expr block) {
    split_ = write_.Mod(block, in_grid);
    SetBlock(in_grid == 1 ? block : write_.Div(block, in_grid));
    if (!tile_.is_cluster) return write_.Alloc(shared, of_threads());
    return write_.Alloc(shared,
                        write_.Loop("split", tile_.splits, ir::LoopKind::kCluster, [&](Expr split) {
                          split_ = split;
                          return of_threads();
                        }));
  });
}

void OnlineBuilder::SetBlock(Expr block) {
  block_ = block;
  Expr row_tile = write_.Mod(block, row_tiles()), rest = write_.Div(block, row_tiles());
  if (chain_.last_key && row_tiles() > 1) {
    // Rows that see the most keys come first, those of all problems: the last blocks are short.
    const int64_t problems = blocks() / row_tiles();
    row_tile = pool().Sub(write_.Int(row_tiles() - 1), write_.Div(block, problems));
    rest = write_.Mod(block, problems);
  }
  first_row_ = write_.Mul(row_tile, block_rows());
  for (size_t i = chain_.batch.size(); i-- > 0;) {
    const int32_t var = chain_.batch[i];
    vars_[static_cast<size_t>(var)] = i == 0 ? rest : write_.Mod(rest, extent(var));
    rest = write_.Div(rest, extent(var));
  }
}

StatusOr<ir::Program> OnlineBuilder::Build() {
  vars_.assign(chain_.extents.size(), nullptr);
  MakeBuffers();
  for (Expr& value : vars_) value = write_.Int(0);
  KILN_RETURN_IF_ERROR(SetMatrixUnits());
  ir::Kernel kernel;
  kernel.name = Identifier(dag_.op(chain_.output).name());
  const bool has_second_kernel = is_split() && !tile_.is_cluster;
  if (has_second_kernel) kernel.name += "_of_splits";
  kernel.body = BodyOfBlock();
  kernel.grid[0] = blocks() * (has_second_kernel ? tile_.splits : 1);
  kernel.block[0] = threads();
  if (tile_.is_cluster) kernel.cluster = tile_.splits;
  const ir::Hints& hints = state_.stage(chain_.output).hints;
  for (const ir::HintRow& row : ir::kHints) {
    if (row.place == ir::HintPlace::kKernel) kernel.hints[row.hint] = hints[row.hint];
    if (row.place == ir::HintPlace::kStage && hints[row.hint] != 0)
      program_.stages[static_cast<size_t>(chain_.output)].hints[row.hint] = hints[row.hint];
  }
  program_.kernels.push_back(std::move(kernel));
  if (has_second_kernel) program_.kernels.push_back(JoiningKernel());
  return std::move(program_);
}

StatusOr<ir::Program> BuildOnlineSoftmax(const schedule::State& state) {
  KILN_ASSIGN_OR_RETURN(dag::SoftmaxChain chain, dag::FindSoftmaxChain(*state.dag()));
  return OnlineBuilder(state, std::move(chain)).Build();
}

}  // namespace kiln::lower
