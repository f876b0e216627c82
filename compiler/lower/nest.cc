#include "compiler/lower/nest.h"

#include <algorithm>
#include <utility>

#include "compiler/ir/rewrite.h"
#include "compiler/lower/indexed_regions.h"
#include "compiler/lower/launch.h"
#include "compiler/lower/names.h"
#include "compiler/lower/nest_builder.h"
#include "compiler/lower/whole_tiles.h"
#include "compiler/schedule/async_copy.h"

namespace kiln::lower {

using schedule::Attach;
using schedule::IterKind;
using schedule::State;

NestBuilder::NestBuilder(const State& state, Bounds& bounds, bool gpu, const std::stop_token& stop)
    : state_(state),
      bounds_(bounds),
      pool_(*bounds.pool),
      gpu_(gpu),
      stop_(stop),
      attachments_(state, bounds, gpu),
      tables_(state, bounds, attachments_, gpu) {}

StatusOr<ir::Program> NestBuilder::Build() {
  NameChosenIndices(bounds_, [&](ir::Expr load) {
    return pool_.Load(tables_.SlotOf(load->id, 0), load->args(), load->type);
  });
  Names names;
  for (int s = 0; s < state_.num_stages(); ++s) {
    if (!bounds_.stages[s].computed || state_.attach(s).kind != Attach::kRoot) continue;
    if (stop_.stop_requested()) return Cancelled("stopped");
    KILN_ASSIGN_OR_RETURN(ir::Kernel kernel, BuildKernel(s));
    kernel.name = names.Unique(state_.stage(s).op->name());
    program().kernels.push_back(std::move(kernel));
  }
  return tables_.Take();
}

StatusOr<ir::Kernel> NestBuilder::BuildKernel(int s) {
  ir::Kernel kernel;
  kernel.body = EmitStage(s);
  KILN_RETURN_IF_ERROR(error_);
  if (gpu_) KILN_RETURN_IF_ERROR(SetLaunch(kernel));
  if (kernel.cluster > 1 && !attachments_.HasClusterLoop(s)) {
    return FailedPrecondition(
        "stage {} ({}) has no loop over the blocks of a cluster, what is computed inside of it "
        "has: each of them would store all of it",
        s, state_.stage(s).op->name());
  }
  kernel.hints = tables_.HintsOf(s, ir::HintPlace::kKernel);
  return kernel;
}

ir::Stmt NestBuilder::EmitStage(int s) {
  const int outermost_guard = gpu_ ? attachments_.OutermostGuardLevel(s) : -1;
  const StageFrame frame(s, state_.stage(s), bounds_.stages[s], outermost_guard);
  if (gpu_) {
    const std::string_view fault = attachments_.ClusterFault(s);
    if (!fault.empty()) Refuse(frame, fault);
  }
  return WrapGuards(frame, -1, EmitLoops(frame, 0));
}

ir::Stmt NestBuilder::EmitLoops(const StageFrame& frame, int i) {
  if (i == frame.num_loops()) return EmitStores(frame);
  if (i == frame.first_reduce) {
    if (const ir::Stmt reduction = EmitReduction(frame)) return reduction;
  }
  ir::Stmt body = EmitLoops(frame, i + 1);
  body =
      EmitAttachedGroup(attachments_.At(frame.s, i), attachments_.RunsRepeatedly(frame.s, i), body);
  body = WrapLoop(frame, i, WrapGuards(frame, i, body));
  if (i != frame.first_reduce) return body;
  const ir::Stmt both[] = {EmitInit(frame), body};
  return ir::MakeSeq(pool_, both);
}

ir::Stmt NestBuilder::EmitReduction(const StageFrame& frame) {
  if (!gpu_ && frame.tile == StageFrame::kAnyTile) {
    const TileConditions tile = TileConditionsOf(frame, bounds_.simplifier);
    if (tile.whole != nullptr) return EmitTwice(frame, tile);
  }
  if (attachments_.ReducesOverThreads(frame.s)) return EmitThreadReduction(frame);
  if (frame.stage.buffering > 1) {
    const int fetch = FetchAheadLevel(frame);
    if (fetch >= 0) return EmitFetchAhead(frame, fetch);
  }
  return nullptr;
}

ir::Stmt NestBuilder::EmitTwice(const StageFrame& frame, const TileConditions& tile) {
  StageFrame version = frame;
  version.tile = StageFrame::kWholeTile;
  const ir::Stmt inside = EmitLoops(version, frame.first_reduce);
  version.tile = StageFrame::kTailTile;
  const ir::Stmt again = EmitLoops(version, frame.first_reduce);
  const ir::Stmt tail = TailVersion(frame, again);
  const ir::Expr part = pool_.Not(tile.whole);
  const ir::Stmt both[] = {
      ir::MakeIf(pool_, tile.whole, inside),
      ir::MakeIf(pool_, tile.some == nullptr ? part : pool_.And(part, tile.some), tail)};
  return ir::MakeSeq(pool_, both);
}

ir::Stmt NestBuilder::TailVersion(const StageFrame& frame, ir::Stmt part) {
  // The outermost reductions stay loops in the tail version, which is not worth the code of
  // unrolled loops.
  std::vector<int32_t> outermost;
  for (int i = frame.first_reduce;
       i < frame.num_loops() && frame.stage.loop(i).kind != IterKind::kSpatial; ++i)
    outermost.push_back(frame.bounds.loop_vars[i]);
  return CopyWithOwnNames(program(), part, [&](int32_t var) {
    LoopOwner owner = bounds_.owners[var];
    owner.stays_loop = owner.stays_loop || std::ranges::find(outermost, var) != outermost.end();
    bounds_.owners.push_back(owner);
    return bounds_.simplifier.AddVar(bounds_.simplifier.RangeOf(pool_.Var(var)).hi + 1);
  });
}

ir::Stmt NestBuilder::WrapGuards(const StageFrame& frame, int level, ir::Stmt body) {
  ir::Expr condition = nullptr;
  for (size_t g = 0; g < frame.guard_levels.size(); ++g) {
    if (frame.guard_levels[g] != level || frame.HoldsInTile(g)) continue;
    condition = condition == nullptr ? frame.bounds.guards[g]
                                     : pool_.And(condition, frame.bounds.guards[g]);
  }
  return condition == nullptr ? body : ir::MakeIf(pool_, condition, body);
}

ir::Stmt NestBuilder::WrapLoop(const StageFrame& frame, int i, ir::Stmt body) {
  const int32_t var = frame.bounds.loop_vars[i];
  if (var < 0 || !IsOwn(frame, i)) return body;
  const ir::LoopKind kind = KindOf(frame.stage.annotation(i));
  std::vector<int32_t> of_all_lanes;
  if (kind == ir::LoopKind::kVectorized) body = WithoutNextBuffers(body, of_all_lanes);
  ir::Stmt loop = ir::MakeFor(pool_, var, frame.ExtentOf(i), kind, body);
  for (const int32_t slot : of_all_lanes) loop = ir::MakeAlloc(pool_, slot, loop);
  return loop;
}

ir::Stmt NestBuilder::WithoutNextBuffers(ir::Stmt body, std::vector<int32_t>& slots) {
  if (body->kind == ir::StmtKind::kIf)
    return ir::WithBody(pool_, body, WithoutNextBuffers(body->body(), slots));
  if (body->kind != ir::StmtKind::kAlloc || !next_buffers_.contains(body->slot)) return body;
  slots.push_back(body->slot);
  return WithoutNextBuffers(body->body(), slots);
}

bool NestBuilder::IsOwn(const StageFrame& frame, int i) const {
  const LoopOwner owner = bounds_.owners[frame.bounds.loop_vars[i]];
  return owner.stage == frame.s && owner.loop == i;
}

namespace {

// Makes asynchronous copies of the stores.
ir::Stmt Asynchronously(ir::ExprPool& pool, ir::Stmt s) {
  if (s->kind == ir::StmtKind::kStore)
    return ir::MakeStore(pool, s->slot, s->stage, s->indices(), s->value(), /*is_async=*/true);
  return ir::RewriteChildren(pool, s, [&](ir::Stmt child) { return Asynchronously(pool, child); });
}

// Returns true if a thread may copy all that the statement stores.
bool IsCopyable(const ir::Program& program, ir::Stmt s) {
  if (s->kind == ir::StmtKind::kStore) return ir::IsCopyable(program, s->value());
  return std::ranges::all_of(s->children(),
                             [&](ir::Stmt child) { return IsCopyable(program, child); });
}

}  // namespace

ir::Stmt NestBuilder::EmitAttachedGroup(const std::vector<int>& group, bool repeated,
                                        ir::Stmt rest) {
  const bool of_cluster = std::any_of(group.begin(), group.end(),
                                      [&](int s) { return gpu_ && attachments_.IsOfCluster(s); });
  const ir::Stmt barrier = of_cluster ? ir::MakeClusterBarrier(pool_) : ir::MakeBarrier(pool_);
  if (of_cluster) {
    const ir::Stmt both[] = {rest, barrier};
    rest = ir::MakeSeq(pool_, both);
  }
  bool synchronized = true;
  for (size_t k = group.size(); k-- > 0;) {
    const int s = group[k];
    if (!attachments_.IsShared(s)) {
      rest = EmitAttached(s, rest);
      synchronized = false;
      continue;
    }
    // A row that reductions over threads read is copied, and does not go through registers.
    const bool is_row =
        state_.stage(s).asks_for_shared() && schedule::CanCopyAsync(state_, s) &&
        std::ranges::any_of(group, [&](int other) {
          return attachments_.ReducesOverThreads(other) && attachments_.Reads(other, s);
        });
    if (is_row) {
      const ir::Stmt fetch = EmitStage(s);
      const bool can = IsCopyable(program(), fetch);
      const ir::Stmt all[] = {can ? Asynchronously(pool_, fetch) : fetch, ir::MakeCommit(pool_),
                              ir::MakeBarrier(pool_, 0), rest};
      rest = ir::MakeSeq(pool_, all);
      for (int slot : tables_.SlotsOf(s)) rest = ir::MakeAlloc(pool_, slot, rest);
      synchronized = true;
      continue;
    }
    // One barrier serves neighbours that do not read each other.
    const bool read_next = k + 1 < group.size() && (!attachments_.IsShared(group[k + 1]) ||
                                                    attachments_.Reads(group[k + 1], s));
    if (k + 1 == group.size() || read_next || !synchronized) {
      const ir::Stmt both[] = {barrier, rest};
      rest = ir::MakeSeq(pool_, both);
    }
    synchronized = true;
    rest = EmitAttached(s, rest);
  }
  const bool any_shared =
      std::ranges::any_of(group, [&](int s) { return attachments_.IsShared(s); });
  if (!any_shared || !repeated || of_cluster) return rest;
  const ir::Stmt both[] = {barrier, rest};
  return ir::MakeSeq(pool_, both);
}

ir::Stmt NestBuilder::EmitAttached(int s, ir::Stmt rest) {
  // Makes the buffers first, because the nest below refers to them.
  for (int k = 0; k < state_.stage(s).op->num_outputs(); ++k) {
    KILN_CHECK(tables_.SlotsOf(s)[k] >= 0, "stage {}: reader emitted before its buffer", s);
  }
  const ir::Stmt both[] = {EmitStage(s), rest};
  ir::Stmt body = ir::MakeSeq(pool_, both);
  for (int slot : tables_.SlotsOf(s)) body = ir::MakeAlloc(pool_, slot, body);
  return body;
}

void NestBuilder::Refuse(const StageFrame& frame, std::string_view reason) {
  if (error_.ok()) {
    error_ = FailedPrecondition("stage {} ({}): {}", frame.s, frame.stage.op->name(), reason);
  }
}

StatusOr<ir::Program> BuildNests(const State& state, Bounds& bounds, bool gpu,
                                 const std::stop_token& stop) {
  return NestBuilder(state, bounds, gpu, stop).Build();
}

}  // namespace kiln::lower
