// Builds the loop nests of a program. One class in four files:
//
//   nest.cc                   stages, their loops, attached stages; two versions for tiles
//   nest_stores.cc            stores in the innermost loops, and initialisation
//   nest_fetch_ahead.cc       tiles that are fetched ahead
//   nest_thread_reduction.cc  reductions over the threads of a block
#pragma once

#include <cstdint>
#include <set>
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

  // May be called once.
  StatusOr<ir::Program> Build();

 private:
  StatusOr<ir::Kernel> BuildKernel(int s);

  // ---- loops
  ir::Stmt EmitStage(int s);
  // Emits the loops of the main nest from loop i on.
  ir::Stmt EmitLoops(const StageFrame& frame, int i);
  // Emits the loops from the first reduction loop on if EmitLoops does not: in two versions, over
  // threads, or with tiles fetched ahead. Returns null if EmitLoops emits them.
  ir::Stmt EmitReduction(const StageFrame& frame);
  // Emits two versions of the reduction: without guards for whole tiles, with guards for the
  // others. A test in an inner loop would cost more than the work there.
  ir::Stmt EmitTwice(const StageFrame& frame, const TileConditions& tile);
  // Puts `part` behind the version for whole tiles, with variables and buffers of its own.
  ir::Stmt TailVersion(const StageFrame& frame, ir::Stmt part);
  ir::Stmt WrapGuards(const StageFrame& frame, int level, ir::Stmt body);
  // Puts the loop around the body if the loop is the stage's own and runs more than once. A bound
  // loop inside another one with the same binding has that loop's variable and is not emitted.
  ir::Stmt WrapLoop(const StageFrame& frame, int i, ir::Stmt body);
  // Removes the allocations of next_buffers_ from a body of lanes. These buffers have one element
  // for each lane. Their allocations are put around the lanes, where they do not keep code
  // generators from making vectors.
  ir::Stmt WithoutNextBuffers(ir::Stmt body, std::vector<int32_t>& slots);
  bool IsOwn(const StageFrame& frame, int i) const;
  // Emits the stages attached to one loop, then the rest of its body, with barriers: a shared
  // buffer is complete before it is read, and read by all threads before it is overwritten. A
  // buffer that the blocks of a cluster share must also be read by all of them before one of them
  // ends.
  ir::Stmt EmitAttachedGroup(const std::vector<int>& group, bool repeated, ir::Stmt rest);
  ir::Stmt EmitAttached(int s, ir::Stmt rest);

  // ---- stores
  ir::Stmt EmitStores(const StageFrame& frame);
  // Returns the values, or 0 if the fill guards do not hold.
  std::vector<ir::Expr> ZeroOutside(const StageFrame& frame, std::vector<ir::Expr> values);
  // Emits the initialisation of a reduction: its spatial loops from first_reduce on, with variables
  // of their own.
  ir::Stmt EmitInit(const StageFrame& frame);
  // Stores values[k] to slots[k], all at one place and as if at once: every value is computed from
  // the old contents.
  ir::Stmt StoreAtOnce(const StageFrame& frame, std::span<const int32_t> slots,
                       std::span<const ir::Expr> indices, std::span<const ir::Expr> values);
  ir::Stmt StoreAll(const StageFrame& frame, const std::vector<ir::Expr>& indices,
                    const std::vector<ir::Expr>& values);
  // Returns the indices that the stage stores to. They are relative to its region if it is
  // attached.
  std::vector<ir::Expr> StoreIndices(const StageFrame& frame,
                                     const std::vector<arith::Linear>& iter_values);
  // Returns the values of the stage's outputs, with loads from the buffers of its producers.
  std::vector<ir::Expr> Bodies(const StageFrame& frame);
  ir::Expr EmitRead(int producer, int output, const std::vector<arith::Linear>& indices,
                    ir::Type type);

  // ---- fetching ahead
  // Returns the loop whose attached stages can be fetched ahead. The serial reduction loops down to
  // it have nothing else between them, and only tiles in shared memory that are read from global
  // memory are attached to it. -1: there is no such loop, or it runs only once.
  int FetchAheadLevel(const StageFrame& frame) const;
  bool CanFetchAhead(const StageFrame& frame, int a) const;
  ir::Stmt EmitFetchAhead(const StageFrame& frame, int level);

  // ---- reductions over threads
  // Each thread reduces its share into a register. A tree over shared memory combines the shares,
  // and one thread stores the result.
  ir::Stmt EmitThreadReduction(const StageFrame& frame);
  // Returns the loop that is bound to threads. -1: the reduction cannot be lowered, and Refuse was
  // called.
  int ThreadLoop(const StageFrame& frame);
  // Emits the share of one thread: the reduction loops that are not bound.
  ir::Stmt EmitPartial(const StageFrame& frame, const std::vector<int32_t>& partial, int bound);
  // Emits slots[k][indices] = combine(slots[k][indices], values[k]).
  ir::Stmt Accumulate(const StageFrame& frame, const std::vector<int32_t>& slots,
                      std::span<const ir::Expr> indices, const std::vector<ir::Expr>& values);
  // Emits tree[i] = combine(tree[i], tree[i + half]) for the threads that have a partner. `half` is
  // half of the remaining places, rounded up. `mine` is the thread's own place; the last index is
  // the thread of its row.
  ir::Stmt EmitTreeLevel(const StageFrame& frame, const std::vector<int32_t>& tree,
                         std::span<const ir::Expr> mine, int64_t left);
  // Lets one thread store the results, which are at the front of the tree.
  ir::Stmt EmitResult(const StageFrame& frame, const std::vector<int32_t>& tree,
                      std::span<const ir::Expr> mine);

  // Notes why the state cannot be lowered. The first reason is kept.
  void Refuse(const StageFrame& frame, std::string_view reason);

  ir::Program& program() { return tables_.program(); }

  const schedule::State& state_;
  Bounds& bounds_;
  ir::ExprPool& pool_;
  const bool gpu_;
  const std::stop_token& stop_;
  const Attachments attachments_;
  ProgramTables tables_;
  // Buffers that StoreAtOnce made.
  std::set<int32_t> next_buffers_;
  Status error_;
};

}  // namespace kiln::lower
