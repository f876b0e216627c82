// What builds the nests of a program: one class, an idea a file.
//
//   nest.cc                   stages, their loops, what is attached to them; two versions for tiles
//   nest_stores.cc            what the innermost loops hold, and initialisation
//   nest_fetch_ahead.cc       tiles that are fetched ahead
//   nest_thread_reduction.cc  reductions over the threads of a block
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/ir/program.h"
#include "compiler/lower/attachments.h"
#include "compiler/lower/bounds.h"
#include "compiler/lower/program_tables.h"
#include "compiler/lower/stage_frame.h"
#include "compiler/schedule/state.h"

namespace kiln::lower {

class NestBuilder {
 public:
  NestBuilder(const schedule::State& state, Bounds& bounds, bool gpu, const std::stop_token& stop);

  // Once.
  StatusOr<ir::Program> Build();

 private:
  StatusOr<ir::Kernel> BuildKernel(int s);

  // ---- loops
  ir::Stmt EmitStage(int s);
  // Loops i.. of the main nest.
  ir::Stmt EmitLoops(const StageFrame& frame, int i);
  // Those from the first reduction loop on, where they are emitted in another way; null: they are
  // not.
  ir::Stmt EmitReduction(const StageFrame& frame);
  // The reduction without guards for whole tiles, and with them for the others: tests in an inner
  // loop cost more than the work there.
  ir::Stmt EmitTwice(const StageFrame& frame, const TileConditions& tile);
  // With names of its own, behind the version for whole tiles.
  ir::Stmt AtEnd(const StageFrame& frame, ir::Stmt part);
  ir::Stmt WrapGuards(const StageFrame& frame, int level, ir::Stmt body);
  // Around the body, where the loop is the stage's own and runs more than once. A bound loop inside
  // another one with the same binding has that one's variable and is not emitted.
  ir::Stmt WrapLoop(const StageFrame& frame, int i, ir::Stmt body);
  bool IsOwn(const StageFrame& frame, int i) const;
  // The stages attached to one loop, then the rest of its body. What is shared is complete before
  // anything reads it, and read by all before it is overwritten.
  // What the blocks of a cluster have for each other must also be read by all before one of them
  // ends.
  ir::Stmt EmitAttachedGroup(const std::vector<int>& group, bool repeated, ir::Stmt rest);
  ir::Stmt EmitAttached(int s, ir::Stmt rest);

  // ---- stores
  ir::Stmt EmitStores(const StageFrame& frame);
  // Where the fill guards do not hold.
  std::vector<ir::Expr> ZeroOutside(const StageFrame& frame, std::vector<ir::Expr> values);
  // The initialisation of a reduction: its spatial loops from first_reduce on, with variables of
  // their own.
  ir::Stmt EmitInit(const StageFrame& frame);
  ir::Stmt StoreAll(const StageFrame& frame, const std::vector<ir::Expr>& indices,
                    const std::vector<ir::Expr>& values);
  // Where the stage stores: inside its region when attached.
  std::vector<ir::Expr> StoreIndices(const StageFrame& frame,
                                     const std::vector<arith::Linear>& iter_values);
  // Of the stage's outputs, with producers read where they are.
  std::vector<ir::Expr> Bodies(const StageFrame& frame);
  ir::Expr EmitRead(int producer, int output, const std::vector<arith::Linear>& indices,
                    ir::Type type);

  // ---- fetching ahead
  // The loop whose attached stages can be fetched ahead: the serial reduction loops down to it have
  // nothing else between them, and it has nothing attached but tiles in shared memory that are read
  // from global memory. -1: there is none, or nothing runs more than once.
  int FetchAheadLevel(const StageFrame& frame) const;
  bool CanFetchAhead(const StageFrame& frame, int a) const;
  ir::Stmt EmitFetchAhead(const StageFrame& frame, int level);

  // ---- reductions over threads
  // Each thread reduces its share into a register; the shares are combined by a tree over shared
  // memory; every thread then holds the result in reach, one stores it.
  ir::Stmt EmitThreadReduction(const StageFrame& frame);
  // The loop that is bound; -1: the reduction cannot be lowered, which is noted.
  int ThreadLoop(const StageFrame& frame);
  // The share of one thread: the reduction loops that are not bound.
  ir::Stmt EmitPartial(const StageFrame& frame, const std::vector<int32_t>& partial, int bound);
  // slots[k][indices] = combine(slots[k][indices], values[k])
  ir::Stmt Accumulate(const StageFrame& frame, const std::vector<int32_t>& slots,
                      std::span<const ir::Expr> indices, const std::vector<ir::Expr>& values);
  // tree[i] = combine(tree[i], tree[i + half]) for the threads that have a partner; half of what is
  // left, rounded up. `mine`: the thread's own place, the last index is the thread of its row.
  ir::Stmt EmitTreeLevel(const StageFrame& frame, const std::vector<int32_t>& tree,
                         std::span<const ir::Expr> mine, int64_t left);
  // The results are at the front of the tree; one thread stores them.
  ir::Stmt EmitResult(const StageFrame& frame, const std::vector<int32_t>& tree,
                      std::span<const ir::Expr> mine);

  // Notes why the state cannot be lowered; the first reason is kept.
  void Refuse(const StageFrame& frame, std::string_view reason);

  ir::Program& program() { return tables_.program(); }

  const schedule::State& state_;
  Bounds& bounds_;
  ir::ExprPool& pool_;
  const bool gpu_;
  const std::stop_token& stop_;
  const Attachments attachments_;
  ProgramTables tables_;
  Status error_;
};

}  // namespace kiln::lower
