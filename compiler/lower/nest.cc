#include "compiler/lower/nest.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_set>

#include "compiler/dag/index_limit.h"
#include "compiler/lower/body.h"
#include "compiler/lower/fetch_ahead.h"
#include "compiler/lower/iteration.h"
#include "compiler/lower/whole_tiles.h"
#include "compiler/schedule/async_copy.h"
#include "compiler/schedule/buffer_shape.h"

namespace kiln::lower {
namespace {

using schedule::Annotation;
using schedule::Attach;
using schedule::IterKind;
using schedule::Stage;
using schedule::State;

ir::LoopKind KindOf(Annotation annotation) {
  switch (annotation) {
    case Annotation::kUnroll:
      return ir::LoopKind::kUnrolled;
    case Annotation::kVectorize:
      return ir::LoopKind::kVectorized;
    case Annotation::kParallel:
      return ir::LoopKind::kParallel;
    case Annotation::kVThread:
      return ir::LoopKind::kVThread;
    case Annotation::kBlockX:
      return ir::LoopKind::kBlockX;
    case Annotation::kBlockY:
      return ir::LoopKind::kBlockY;
    case Annotation::kBlockZ:
      return ir::LoopKind::kBlockZ;
    case Annotation::kCluster:
      return ir::LoopKind::kCluster;
    case Annotation::kThreadX:
      return ir::LoopKind::kThreadX;
    case Annotation::kThreadY:
      return ir::LoopKind::kThreadY;
    case Annotation::kThreadZ:
      return ir::LoopKind::kThreadZ;
    default:
      return ir::LoopKind::kSerial;
  }
}

// Extents of the bound loops by kind, from blockIdx.x on.
constexpr size_t IndexOf(ir::LoopKind kind) {
  return static_cast<size_t>(kind) - static_cast<size_t>(ir::LoopKind::kBlockX);
}
using LaunchExtents = std::array<int64_t, IndexOf(ir::LoopKind::kThreadZ) + 1>;

// Names that are identifiers and unique in their table.
class Names {
 public:
  std::string Unique(std::string name) {
    for (char& c : name) {
      if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))) c = '_';
    }
    while (!name.empty() && name.back() == '_') name.pop_back();
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) name.insert(name.begin(), 'v');
    std::string candidate = name;
    for (int i = 1; !used_.insert(candidate).second; ++i) candidate = fmt::format("{}_{}", name, i);
    return candidate;
  }

 private:
  std::unordered_set<std::string> used_;
};

class NestBuilder {
 public:
  NestBuilder(const State& state, Bounds& bounds, bool gpu)
      : state_(state), bounds_(bounds), pool_(*bounds.pool), gpu_(gpu) {}

  StatusOr<ir::Program> Build() {
    program_.pool = bounds_.pool;
    MakeStages();
    MakeArguments();
    attached_.resize(state_.num_stages());
    for (int s = 0; s < state_.num_stages(); ++s) {
      if (state_.attach(s).kind == Attach::kIter) attached_[state_.attach(s).stage].push_back(s);
    }
    Names kernel_names;
    for (int s = 0; s < state_.num_stages(); ++s) {
      if (!bounds_.stages[s].computed || state_.attach(s).kind != Attach::kRoot) continue;
      ir::Kernel kernel;
      kernel.name = kernel_names.Unique(state_.stage(s).op->name());
      kernel.body = EmitStage(s);
      KILN_RETURN_IF_ERROR(error_);
      if (gpu_) KILN_RETURN_IF_ERROR(SetLaunch(kernel));
      if (kernel.cluster > 1 && !HasClusterLoop(s)) {
        return FailedPrecondition(
            "stage {} ({}) has no loop over the blocks of a cluster, what is computed inside of it "
            "has: each of them would store all of it",
            s, state_.stage(s).op->name());
      }
      if (gpu_) kernel.min_blocks = state_.stage(s).min_blocks;
      program_.kernels.push_back(std::move(kernel));
    }
    MakeLoopVars();
    return std::move(program_);
  }

 private:
  // ---- tables

  void MakeStages() {
    for (int s = 0; s < state_.num_stages(); ++s) {
      program_.stages.push_back({stage_names_.Unique(state_.stage(s).op->name()), UnrollLimit(s),
                                 gpu_ ? state_.stage(s).fragments : 0});
    }
  }

  // Launch dimensions: the extents of the bound loops.
  Status SetLaunch(ir::Kernel& kernel) const {
    LaunchExtents extents = {};
    KILN_RETURN_IF_ERROR(CollectLaunch(kernel.body, extents));
    const auto extent_of = [&](ir::LoopKind first, size_t d) {
      return std::max<int64_t>(1, extents[IndexOf(first) + d]);
    };
    for (size_t d = 0; d < 3; ++d) {
      kernel.grid[d] = extent_of(ir::LoopKind::kBlockX, d);
      kernel.block[d] = extent_of(ir::LoopKind::kThreadX, d);
    }
    kernel.cluster = extent_of(ir::LoopKind::kCluster, 0);
    return OkStatus();
  }

  Status CollectLaunch(ir::Stmt s, LaunchExtents& extents) const {
    if (s->kind == ir::StmtKind::kFor && s->loop_kind >= ir::LoopKind::kBlockX) {
      const size_t d = IndexOf(s->loop_kind);
      if (extents[d] != 0 && extents[d] != s->extent) {
        return FailedPrecondition("loops bound to {} have extents {} and {}, expected one extent",
                                  ir::LoopKindName(s->loop_kind), extents[d], s->extent);
      }
      extents[d] = s->extent;
    }
    for (ir::Stmt child : s->children()) KILN_RETURN_IF_ERROR(CollectLaunch(child, extents));
    return OkStatus();
  }

  // The stage's own pragma, or that of the nest it is attached to.
  int32_t UnrollLimit(int s) const {
    while (state_.stage(s).auto_unroll_max_step == 0 && state_.attach(s).kind == Attach::kIter)
      s = state_.attach(s).stage;
    return state_.stage(s).auto_unroll_max_step;
  }

  // Arguments of the program: inputs and outputs as the initial DAG lists them, then whole
  // intermediate tensors.
  void MakeArguments() {
    slots_.resize(state_.num_stages());
    const dag::Dag& dag = *state_.dag();
    for (int s = 0; s < state_.num_stages(); ++s)
      slots_[s].assign(state_.stage(s).op->num_outputs(), -1);
    for (size_t a = 0; a < dag.arguments().size(); ++a) {
      const dag::Tensor& t = dag.arguments()[a];
      const dag::Operator& op = dag.op(t.op);
      AddBuffer(t.op, t.output, op.is_placeholder() ? ir::Scope::kInput : ir::Scope::kOutput,
                op.shape());
      if (!op.is_placeholder() || !op.type().is_int()) continue;
      // In the initial DAG: steps may have put copies between the input and its use as an index.
      const dag::Dag& initial = *state_.initial_dag();
      program_.buffers.back().index_limit = dag::IndexLimit(initial, initial.arguments()[a].op);
    }
    for (int s = 0; s < state_.num_stages(); ++s) {
      if (!bounds_.stages[s].computed || state_.attach(s).kind != Attach::kRoot) continue;
      for (int k = 0; k < state_.stage(s).op->num_outputs(); ++k) {
        if (slots_[s][k] < 0) AddBuffer(s, k, ir::Scope::kWorkspace, ShapeOf(s));
      }
    }
  }

  void AddBuffer(int s, int output, ir::Scope scope, std::vector<int64_t> shape) {
    slots_[s][output] = static_cast<int32_t>(program_.buffers.size());
    const dag::Operator& op = *state_.stage(s).op;
    std::string name = op.name();
    if (op.num_outputs() > 1) name += fmt::format(".v{}", output);
    program_.buffers.push_back(
        {buffer_names_.Unique(std::move(name)), op.type(output), std::move(shape), scope, 0});
  }

  std::vector<int64_t> ShapeOf(int s) const {
    return schedule::BufferShape(state_.stage(s), bounds_.stages[s].region_extent);
  }

  // Indices of the axes -> of the dimensions of the stage's buffer. A program's arguments are never
  // laid out otherwise: LA steps refuse them.
  std::vector<ir::Expr> LaidOut(int s, std::vector<ir::Expr> indices) const {
    const Stage& stage = state_.stage(s);
    if (stage.layout.empty()) return indices;
    std::vector<ir::Expr> result;
    for (int axis : stage.layout) result.push_back(indices[axis]);
    return result;
  }

  void MakeLoopVars() {
    Names names;
    for (int v = 0; v < bounds_.simplifier.num_vars(); ++v) {
      const LoopOwner owner = bounds_.owners[v];
      const ir::Interval range = bounds_.simplifier.RangeOf(pool_.Var(v));
      program_.vars.push_back(
          {names.Unique(schedule::LoopName(state_.stage(owner.stage), owner.loop)), range.hi + 1});
    }
  }

  // ---- statements

  struct StageFrame {
    int s;
    const Stage& stage;
    const StageBounds& bounds;
    int first_reduce;               // loop number; number of loops when there is none
    std::vector<int> guard_levels;  // per guard: the loop at which all its variables are known, -1:
                                    // outside the stage
    enum { kAnyTile, kWholeTile, kPartTile } tile = kAnyTile;  // what is emitted is for
  };

  ir::Stmt EmitStage(int s) {
    const Stage& stage = state_.stage(s);
    StageFrame frame{s, stage, bounds_.stages[s], static_cast<int>(stage.loops.size()), {}};
    for (int i = 0; i < static_cast<int>(stage.loops.size()); ++i) {
      if (stage.loop(i).kind != IterKind::kSpatial && stage.loop(i).kind != IterKind::kSpecial) {
        frame.first_reduce = i;
        break;
      }
    }
    if (gpu_) CheckClusterLoop(frame);
    const int outermost = gpu_ ? OutermostGuardLevel(s) : -1;
    for (ir::Expr guard : frame.bounds.guards)
      frame.guard_levels.push_back(std::max(GuardLevel(frame, guard), outermost));
    ir::Stmt body = EmitLoops(frame, 0);
    return WrapGuards(frame, -1, body);
  }

  int GuardLevel(const StageFrame& frame, ir::Expr guard) const {
    int level = -1;
    ir::Visit(guard, [&](ir::Expr e) {
      if (e->op != ir::Op::kVar) return;
      for (int i = 0; i < static_cast<int>(frame.bounds.loop_vars.size()); ++i) {
        if (frame.bounds.loop_vars[i] == e->id) level = std::max(level, i);
      }
    });
    return level;
  }

  // Does no reduction loop decide about it?
  static bool IsSpatial(const StageFrame& frame, ir::Expr guard) {
    for (int i = frame.first_reduce; i < static_cast<int>(frame.stage.loops.size()); ++i) {
      if (frame.stage.loop(i).kind != IterKind::kSpatial && frame.bounds.loop_vars[i] >= 0 &&
          ir::UsesVar(guard, frame.bounds.loop_vars[i]))
        return false;
    }
    return true;
  }

  // A guard inside the reduction that holds in a whole tile.
  static bool HoldsInTile(const StageFrame& frame, size_t guard) {
    return frame.tile == StageFrame::kWholeTile &&
           frame.guard_levels[guard] >= frame.first_reduce &&
           IsSpatial(frame, frame.bounds.guards[guard]);
  }

  // Is the guard outside the reduction loops, and with that outside the initialisation too?
  static bool StandsAround(const StageFrame& frame, ir::Expr guard) {
    for (size_t g = 0; g < frame.guard_levels.size(); ++g) {
      if (frame.bounds.guards[g] == guard) return frame.guard_levels[g] < frame.first_reduce;
    }
    return false;
  }

  ir::Stmt WrapGuards(const StageFrame& frame, int level, ir::Stmt body) {
    ir::Expr condition = nullptr;
    for (size_t g = 0; g < frame.guard_levels.size(); ++g) {
      if (frame.guard_levels[g] != level || HoldsInTile(frame, g)) continue;
      condition = condition == nullptr ? frame.bounds.guards[g]
                                       : pool_.And(condition, frame.bounds.guards[g]);
    }
    return condition == nullptr ? body : ir::MakeIf(pool_, condition, body);
  }

  // Loops i.. of the main nest.
  ir::Stmt EmitLoops(const StageFrame& frame, int i) {
    if (i == static_cast<int>(frame.stage.loops.size())) return EmitStores(frame);
    if (i == frame.first_reduce && !gpu_ && frame.tile == StageFrame::kAnyTile) {
      const TileConditions tile = ConditionsOf(frame);
      if (tile.whole != nullptr) return EmitTwice(frame, tile);
    }
    if (i == frame.first_reduce && ReducesOverThreads(frame)) return EmitThreadReduction(frame);
    if (i == frame.first_reduce && frame.stage.buffering > 1) {
      const int fetch = FetchAheadLevel(frame);
      if (fetch >= 0) return EmitFetchAhead(frame, fetch);
    }
    ir::Stmt body = EmitLoops(frame, i + 1);
    std::vector<int> here;
    for (int a : attached_[frame.s]) {
      if (state_.attach(a).loop == i) here.push_back(a);
    }
    body = EmitAttachedGroup(here, RunsRepeatedly(frame.s, i), body);
    body = WrapGuards(frame, i, body);
    const int32_t var = frame.bounds.loop_vars[i];
    if (var >= 0 && IsOwn(frame, i)) {
      const int64_t extent = frame.bounds.iter_extents[frame.stage.loops[i].iter];
      body = ir::MakeFor(pool_, var, extent, KindOf(frame.stage.annotation(i)), body);
    }
    if (i == frame.first_reduce) {
      const ir::Stmt both[] = {EmitInit(frame), body};
      body = ir::MakeSeq(pool_, both);
    }
    return body;
  }

  // Of a reduction with guards of spatial axes inside, as conditions that stand outside: that they
  // all hold in the whole tile, and that they may somewhere in it. Null: there is none.
  struct TileConditions {
    ir::Expr whole = nullptr, some = nullptr;
  };
  TileConditions ConditionsOf(const StageFrame& frame) {
    std::vector<int32_t> inner;
    for (int i = frame.first_reduce; i < static_cast<int>(frame.stage.loops.size()); ++i)
      inner.push_back(frame.bounds.loop_vars[i]);
    const auto both = [&](ir::Expr a, ir::Expr b) {
      return a == nullptr ? b : b == nullptr ? a : pool_.And(a, b);
    };
    TileConditions tile;
    for (size_t g = 0; g < frame.guard_levels.size(); ++g) {
      const ir::Expr guard = frame.bounds.guards[g];
      if (frame.guard_levels[g] < frame.first_reduce || !IsSpatial(frame, guard)) continue;
      const ir::Expr always = HoldsForAll(guard, inner, bounds_.simplifier);
      // Lanes of one vector would go both ways.
      if (always == nullptr || DependsOnLane(frame, always)) return {};
      tile.whole = both(tile.whole, always);
      tile.some = both(tile.some, HoldsForSome(guard, inner, bounds_.simplifier));
    }
    return tile;
  }

  static bool DependsOnLane(const StageFrame& frame, ir::Expr condition) {
    for (int i = 0; i < frame.first_reduce; ++i) {
      const int32_t var = frame.bounds.loop_vars[i];
      if (frame.stage.annotation(i) == Annotation::kVectorize && var >= 0 &&
          ir::UsesVar(condition, var))
        return true;
    }
    return false;
  }

  // The reduction without guards for whole tiles, and with them for the others: tests in an inner
  // loop cost more than the work there.
  ir::Stmt EmitTwice(const StageFrame& frame, const TileConditions& tile) {
    StageFrame version = frame;
    version.tile = StageFrame::kWholeTile;
    const ir::Stmt inside = EmitLoops(version, frame.first_reduce);
    version.tile = StageFrame::kPartTile;
    const ir::Stmt again = EmitLoops(version, frame.first_reduce);
    // The outermost reduction stays a loop: what is at the end is not worth the code.
    std::vector<int32_t> outermost;
    for (int i = frame.first_reduce; i < static_cast<int>(frame.stage.loops.size()) &&
                                     frame.stage.loop(i).kind != IterKind::kSpatial;
         ++i)
      outermost.push_back(frame.bounds.loop_vars[i]);
    const ir::Stmt at_end = CopyWithOwnNames(program_, again, [&](int32_t var) {
      LoopOwner owner = bounds_.owners[var];
      owner.stays_loop = owner.stays_loop || std::ranges::find(outermost, var) != outermost.end();
      bounds_.owners.push_back(owner);
      return bounds_.simplifier.AddVar(bounds_.simplifier.RangeOf(pool_.Var(var)).hi + 1);
    });
    const ir::Expr part = pool_.Not(tile.whole);
    const ir::Stmt both[] = {
        ir::MakeIf(pool_, tile.whole, inside),
        ir::MakeIf(pool_, tile.some == nullptr ? part : pool_.And(part, tile.some), at_end)};
    return ir::MakeSeq(pool_, both);
  }

  // A bound loop inside another one with the same binding has that one's variable and is not
  // emitted.
  bool IsOwn(const StageFrame& frame, int i) const {
    const LoopOwner owner = bounds_.owners[frame.bounds.loop_vars[i]];
    return owner.stage == frame.s && owner.loop == i;
  }

  // ---- GPU

  static bool IsThread(Annotation a) {
    return a == Annotation::kThreadX || a == Annotation::kThreadY || a == Annotation::kThreadZ;
  }

  bool IsShared(int s) const {
    if (!gpu_ || state_.attach(s).kind != Attach::kIter) return false;
    if (state_.stage(s).op->name().ends_with(".shared")) return true;
    for (Attach at = state_.attach(s); at.kind == Attach::kIter; at = state_.attach(at.stage)) {
      for (int l = 0; l <= at.loop; ++l) {
        if (IsThread(state_.stage(at.stage).annotation(l))) return false;
      }
    }
    return true;
  }

  // The loop of s over the blocks of a cluster, -1: there is none, or it is another stage's.
  int OwnClusterLoop(int s) const {
    for (int l = 0; l < static_cast<int>(state_.stage(s).loops.size()); ++l) {
      const int32_t var = bounds_.stages[s].loop_vars[l];
      if (state_.stage(s).annotation(l) != Annotation::kCluster || var < 0) continue;
      return bounds_.owners[var].stage == s && bounds_.owners[var].loop == l ? l : -1;
    }
    return -1;
  }

  bool HasClusterLoop(int s) const {
    const Stage& stage = state_.stage(s);
    return std::ranges::any_of(stage.loops, [](const schedule::LoopIter& loop) {
      return loop.annotation == Annotation::kCluster;
    });
  }

  // Is s in the shared memory of all blocks of a cluster, a part in each?
  bool IsOfCluster(int s) const { return IsShared(s) && OwnClusterLoop(s) >= 0; }

  // What is computed for others by the blocks of a cluster is theirs by the first axis: each has
  // one element of it.
  void CheckClusterLoop(const StageFrame& frame) {
    if (state_.attach(frame.s).kind != Attach::kIter) return;
    const int loop = OwnClusterLoop(frame.s);
    if (loop < 0) {
      for (int l = 0; l < static_cast<int>(frame.stage.loops.size()); ++l) {
        if (frame.stage.annotation(l) != Annotation::kCluster || frame.bounds.loop_vars[l] < 0)
          continue;
        Refuse(frame, "the blocks of a cluster share its loop out, and one around it already");
      }
    } else if (!IsShared(frame.s)) {
      Refuse(frame,
             "the blocks of a cluster share its loop out, but each thread computes it for itself");
    } else if (frame.stage.loops[loop].iter != 0 ||
               (!frame.stage.layout.empty() && frame.stage.layout[0] != 0)) {
      Refuse(
          frame,
          "the blocks of a cluster share another loop out than its first axis, not split and the "
          "outermost dimension");
    } else if (!frame.bounds.region_min[0].is_constant()) {
      Refuse(frame, "the blocks of a cluster share its first axis out, but not all of it is read");
    }
  }

  // A barrier must be reached by all threads: guards stand inside the loop that has one. -1: there
  // is none.
  int OutermostGuardLevel(int s) const {
    const int innermost = static_cast<int>(state_.stage(s).loops.size()) - 1;
    int level = -1;
    for (int l = 0; l <= innermost; ++l) {
      if (IsThread(state_.stage(s).annotation(l)) &&
          state_.stage(s).loop(l).kind == IterKind::kReduce)
        return innermost;
    }
    for (int a : attached_[s]) {
      if (IsShared(a) || HasBarrier(a)) level = std::max(level, state_.attach(a).loop + 1);
    }
    return std::min(level, innermost);
  }

  // Is a barrier emitted inside the nest of s?
  bool HasBarrier(int s) const {
    for (int l = 0; l < static_cast<int>(state_.stage(s).loops.size()); ++l) {
      if (IsThread(state_.stage(s).annotation(l)) &&
          state_.stage(s).loop(l).kind == IterKind::kReduce) {
        return true;
      }
    }
    return std::any_of(attached_[s].begin(), attached_[s].end(),
                       [&](int a) { return IsShared(a) || HasBarrier(a); });
  }

  // Does loop i of stage s, or one around it, run its body more than once in a thread?
  bool RunsRepeatedly(int s, int i) const {
    for (int stage = s, loop = i;;) {
      for (int l = 0; l <= loop; ++l) {
        const bool bound = schedule::IsBound(state_.stage(stage).annotation(l));
        if (!bound && bounds_.stages[stage].loop_vars[l] >= 0) return true;
      }
      const Attach& at = state_.attach(stage);
      if (at.kind != Attach::kIter) return false;
      stage = at.stage;
      loop = at.loop;
    }
  }

  // The stages attached to one loop, then the rest of its body. What is shared is complete before
  // anything reads it, and read by all before it is overwritten.
  // What the blocks of a cluster have for each other must also be read by all before one of them
  // ends.
  ir::Stmt EmitAttachedGroup(const std::vector<int>& group, bool repeated, ir::Stmt rest) {
    const bool of_cluster =
        std::any_of(group.begin(), group.end(), [&](int s) { return gpu_ && IsOfCluster(s); });
    const ir::Stmt barrier = of_cluster ? ir::MakeClusterBarrier(pool_) : ir::MakeBarrier(pool_);
    if (of_cluster) {
      const ir::Stmt both[] = {rest, barrier};
      rest = ir::MakeSeq(pool_, both);
    }
    bool synchronized = true;
    for (size_t k = group.size(); k-- > 0;) {
      const int s = group[k];
      if (!IsShared(s)) {
        rest = EmitAttached(s, rest);
        synchronized = false;
        continue;
      }
      // One barrier serves neighbours that do not read each other.
      const bool read_next =
          k + 1 < group.size() && (!IsShared(group[k + 1]) || Reads(group[k + 1], s));
      if (k + 1 == group.size() || read_next || !synchronized) {
        const ir::Stmt both[] = {barrier, rest};
        rest = ir::MakeSeq(pool_, both);
      }
      synchronized = true;
      rest = EmitAttached(s, rest);
    }
    const bool any_shared =
        std::any_of(group.begin(), group.end(), [&](int s) { return IsShared(s); });
    if (!any_shared || !repeated || of_cluster) return rest;
    const ir::Stmt both[] = {barrier, rest};
    return ir::MakeSeq(pool_, both);
  }

  // The loop whose attached stages can be fetched ahead: the serial reduction loops down to it have
  // nothing else between them, and it has nothing attached but tiles in shared memory that are read
  // from global memory. -1: there is none, or nothing runs more than once.
  int FetchAheadLevel(const StageFrame& frame) const {
    bool repeats = false;
    for (int i = frame.first_reduce; i < static_cast<int>(frame.stage.loops.size()); ++i) {
      if (frame.stage.loop(i).kind != IterKind::kReduce ||
          KindOf(frame.stage.annotation(i)) != ir::LoopKind::kSerial ||
          std::find(frame.guard_levels.begin(), frame.guard_levels.end(), i) !=
              frame.guard_levels.end()) {
        return -1;
      }
      repeats = repeats || frame.bounds.loop_vars[i] >= 0;
      bool any = false;
      for (int a : attached_[frame.s]) {
        if (state_.attach(a).loop != i) continue;
        any = true;
        if (!IsShared(a) || IsOfCluster(a) || !attached_[a].empty() ||
            state_.stage(a).op->is_reduction())
          return -1;
        for (int other : attached_[frame.s]) {
          if (Reads(a, other)) return -1;
        }
      }
      if (any) return repeats ? i : -1;
    }
    return -1;
  }

  ir::Stmt EmitFetchAhead(const StageFrame& frame, int level) {
    const ir::Stmt work = EmitLoops(frame, level + 1);
    std::vector<ir::Stmt> fetches;
    std::vector<FetchedSlot> slots;
    for (int a : attached_[frame.s]) {
      if (state_.attach(a).loop != level) continue;
      fetches.push_back(EmitStage(a));
      for (int32_t slot : slots_[a]) slots.push_back({slot, schedule::CanCopyAsync(state_, a)});
    }
    std::vector<FetchLoop> loops;
    for (int i = frame.first_reduce; i <= level; ++i) {
      const int32_t var = frame.bounds.loop_vars[i];
      if (var >= 0) loops.push_back({var, frame.bounds.iter_extents[frame.stage.loops[i].iter]});
    }
    const auto copy_var = [&](int32_t var, int64_t extent) {
      bounds_.owners.push_back(bounds_.owners[var]);
      return bounds_.simplifier.AddVar(extent);
    };
    std::vector<ir::Stmt> all = {EmitInit(frame)};
    // The last round's tiles are still being read.
    if (RunsRepeatedly(frame.s, frame.first_reduce - 1)) all.push_back(ir::MakeBarrier(pool_));
    const FetchWay way{frame.stage.buffering, frame.stage.asynchronous};
    all.push_back(
        FetchAhead(program_, loops, slots, way, ir::MakeSeq(pool_, fetches), work, copy_var));
    ir::Stmt result = ir::MakeSeq(pool_, all);
    for (const FetchedSlot& fetched : slots) result = ir::MakeAlloc(pool_, fetched.slot, result);
    return result;
  }

  bool Reads(int reader, int s) const {
    const std::vector<int> producers = state_.Producers(reader);
    return std::find(producers.begin(), producers.end(), s) != producers.end();
  }

  bool ReducesOverThreads(const StageFrame& frame) const {
    if (!gpu_) return false;
    for (int l = frame.first_reduce; l < static_cast<int>(frame.stage.loops.size()); ++l) {
      if (IsThread(frame.stage.annotation(l)) && frame.stage.loop(l).kind == IterKind::kReduce)
        return true;
    }
    return false;
  }

  // Each thread reduces its share into a register; the shares are combined by a tree over shared
  // memory; every thread then holds the result in reach, one stores it.
  ir::Stmt EmitThreadReduction(const StageFrame& frame) {
    const Stage& stage = frame.stage;
    const int n = static_cast<int>(stage.loops.size());
    int bound = -1;
    for (int l = frame.first_reduce; l < n; ++l) {
      if (stage.loop(l).kind == IterKind::kSpatial && frame.bounds.loop_vars[l] >= 0) {
        return Refuse(frame, "spatial loops inside a reduction over threads cannot be lowered");
      }
      if (!IsThread(stage.annotation(l))) continue;
      if (bound >= 0) return Refuse(frame, "more than one reduction loop is bound to threads");
      bound = l;
    }
    const int32_t thread = frame.bounds.loop_vars[bound];
    if (thread >= 0 && !IsOwn(frame, bound)) {
      return Refuse(frame, "a reduction over threads stands inside a loop bound to them");
    }
    const int64_t threads = thread < 0 ? 1 : frame.bounds.iter_extents[stage.loops[bound].iter];
    const ir::Expr thread_id = thread < 0 ? pool_.Int(0) : pool_.Var(thread);
    const dag::Operator& op = *stage.op;
    const int outputs = op.num_outputs();

    std::vector<int32_t> partial, tree;
    for (int k = 0; k < outputs; ++k) {
      partial.push_back(NewBuffer(op.name() + ".partial", op.type(k), {1}, ir::Scope::kLocal));
      tree.push_back(NewBuffer(op.name() + ".tree", op.type(k), {threads}, ir::Scope::kShared));
    }
    const ir::Expr zero[] = {pool_.Int(0)}, mine[] = {thread_id};
    std::vector<ir::Stmt> body;
    for (int k = 0; k < outputs; ++k) {
      body.push_back(ir::MakeStore(pool_, partial[k], frame.s, zero,
                                   dag::ReduceIdentity(op.combiner(), k, op.type(k), pool_)));
    }
    body.push_back(EmitPartial(frame, partial, bound));
    if (RunsRepeatedly(frame.s, frame.first_reduce - 1)) body.push_back(ir::MakeBarrier(pool_));
    for (int k = 0; k < outputs; ++k) {
      body.push_back(
          ir::MakeStore(pool_, tree[k], frame.s, mine, pool_.Load(partial[k], zero, op.type(k))));
    }
    body.push_back(ir::MakeBarrier(pool_));
    for (int64_t left = threads; left > 1;) {
      const int64_t half = (left + 1) / 2;
      body.push_back(EmitTreeLevel(frame, tree, thread_id, left, half));
      body.push_back(ir::MakeBarrier(pool_));
      left = half;
    }
    std::vector<ir::Expr> results;
    for (int k = 0; k < outputs; ++k) results.push_back(pool_.Load(tree[k], zero, op.type(k)));
    ir::Stmt store = StoreAll(frame, StoreIndices(frame, frame.bounds.iter_values), results);
    for (ir::Expr guard :
         Guards(stage, frame.bounds, frame.bounds.iter_values, false, bounds_.simplifier)) {
      store = ir::MakeIf(pool_, guard, store);
    }
    body.push_back(ir::MakeIf(pool_, pool_.Eq(thread_id, pool_.Int(0)), store));

    ir::Stmt result = ir::MakeSeq(pool_, body);
    for (int k = 0; k < outputs; ++k) {
      result = ir::MakeAlloc(pool_, partial[k], result);
      result = ir::MakeAlloc(pool_, tree[k], result);
    }
    if (thread >= 0)
      result = ir::MakeFor(pool_, thread, threads, KindOf(stage.annotation(bound)), result);
    return result;
  }

  // The share of one thread: the reduction loops that are not bound.
  ir::Stmt EmitPartial(const StageFrame& frame, const std::vector<int32_t>& partial, int bound) {
    const dag::Operator& op = *frame.stage.op;
    const auto read = [&](int producer, int output, const std::vector<ir::Linear>& at,
                          ir::Type type) { return EmitRead(producer, output, at, type); };
    const ir::Expr zero[] = {pool_.Int(0)};
    std::vector<ir::Expr> sources, accumulators;
    for (int k = 0; k < op.num_outputs(); ++k) {
      sources.push_back(
          LowerBody(state_, frame.s, k, frame.bounds.axis_values, bounds_.simplifier, read));
      accumulators.push_back(pool_.Load(partial[k], zero, op.type(k)));
    }
    const std::vector<ir::Expr> values = dag::Combine(op.combiner(), accumulators, sources, pool_);
    std::vector<ir::Stmt> stores;
    for (int k = 0; k < op.num_outputs(); ++k) {
      stores.push_back(ir::MakeStore(pool_, partial[k], frame.s, zero, values[k]));
    }
    ir::Stmt body = ir::MakeSeq(pool_, stores);
    for (ir::Expr guard : frame.bounds.guards) body = ir::MakeIf(pool_, guard, body);
    for (int l = static_cast<int>(frame.stage.loops.size()); l-- > frame.first_reduce;) {
      if (l == bound) continue;
      std::vector<int> here;
      for (int a : attached_[frame.s]) {
        if (state_.attach(a).loop == l) here.push_back(a);
      }
      body = EmitAttachedGroup(here, true, body);
      const int32_t var = frame.bounds.loop_vars[l];
      if (var < 0) continue;
      const int64_t extent = frame.bounds.iter_extents[frame.stage.loops[l].iter];
      body = ir::MakeFor(pool_, var, extent, KindOf(frame.stage.annotation(l)), body);
    }
    return body;
  }

  // tree[i] = combine(tree[i], tree[i + half]) for the threads that have a partner.
  ir::Stmt EmitTreeLevel(const StageFrame& frame, const std::vector<int32_t>& tree, ir::Expr thread,
                         int64_t left, int64_t half) {
    const dag::Operator& op = *frame.stage.op;
    const ir::Expr mine[] = {thread}, partner[] = {pool_.Add(thread, pool_.Int(half))};
    std::vector<ir::Expr> a, b;
    for (size_t k = 0; k < tree.size(); ++k) {
      a.push_back(pool_.Load(tree[k], mine, op.type(static_cast<int>(k))));
      b.push_back(pool_.Load(tree[k], partner, op.type(static_cast<int>(k))));
    }
    const std::vector<ir::Expr> values = dag::Combine(op.combiner(), a, b, pool_);
    std::vector<ir::Stmt> stores;
    for (size_t k = 0; k < tree.size(); ++k) {
      stores.push_back(ir::MakeStore(pool_, tree[k], frame.s, mine, values[k]));
    }
    return ir::MakeIf(pool_, pool_.Lt(thread, pool_.Int(left - half)), ir::MakeSeq(pool_, stores));
  }

  int32_t NewBuffer(std::string name, ir::Type type, std::vector<int64_t> shape, ir::Scope scope) {
    program_.buffers.push_back(
        {buffer_names_.Unique(std::move(name)), type, std::move(shape), scope, 0});
    return static_cast<int32_t>(program_.buffers.size()) - 1;
  }

  // Notes why the state cannot be lowered; the first reason is kept.
  ir::Stmt Refuse(const StageFrame& frame, std::string_view reason) {
    if (error_.ok()) {
      error_ = FailedPrecondition("stage {} ({}): {}", frame.s, frame.stage.op->name(), reason);
    }
    return ir::MakeBarrier(pool_);
  }

  ir::Stmt EmitAttached(int s, ir::Stmt rest) {
    // Buffers first: the nest below refers to them.
    for (int k = 0; k < state_.stage(s).op->num_outputs(); ++k) {
      KILN_CHECK(slots_[s][k] >= 0, "stage {}: reader emitted before its buffer", s);
    }
    const ir::Stmt both[] = {EmitStage(s), rest};
    ir::Stmt body = ir::MakeSeq(pool_, both);
    for (int slot : slots_[s]) body = ir::MakeAlloc(pool_, slot, body);
    return body;
  }

  int32_t SlotOf(int s, int output) {
    if (slots_[s][output] < 0) {
      const ir::Scope scope = IsOfCluster(s) ? ir::Scope::kCluster
                              : IsShared(s)  ? ir::Scope::kShared
                                             : ir::Scope::kLocal;
      for (int k = 0; k < state_.stage(s).op->num_outputs(); ++k)
        AddBuffer(s, k, scope, ShapeOf(s));
    }
    return slots_[s][output];
  }

  ir::Expr EmitRead(int producer, int output, const std::vector<ir::Linear>& indices,
                    ir::Type type) {
    const bool local = state_.attach(producer).kind == Attach::kIter;
    std::vector<ir::Expr> exprs;
    exprs.reserve(indices.size());
    for (size_t d = 0; d < indices.size(); ++d) {
      exprs.push_back(bounds_.simplifier.ToExpr(
          local ? indices[d] - bounds_.stages[producer].region_min[d] : indices[d]));
    }
    return pool_.Load(SlotOf(producer, output), LaidOut(producer, std::move(exprs)), type);
  }

  // Where the stage stores: inside its region when attached.
  std::vector<ir::Expr> StoreIndices(const StageFrame& frame,
                                     const std::vector<ir::Linear>& iter_values) {
    const bool local = state_.attach(frame.s).kind == Attach::kIter;
    std::vector<ir::Expr> indices;
    for (size_t d = 0; d < frame.stage.op->axes().size(); ++d) {
      indices.push_back(bounds_.simplifier.ToExpr(
          local ? iter_values[d] : frame.bounds.region_min[d] + iter_values[d]));
    }
    return LaidOut(frame.s, std::move(indices));
  }

  ir::Stmt EmitStores(const StageFrame& frame) {
    const dag::Operator& op = *frame.stage.op;
    const std::vector<ir::Expr> indices = StoreIndices(frame, frame.bounds.iter_values);
    std::vector<ir::Expr> values;
    const auto read = [&](int producer, int output, const std::vector<ir::Linear>& at,
                          ir::Type type) { return EmitRead(producer, output, at, type); };
    for (int k = 0; k < op.num_outputs(); ++k) {
      values.push_back(
          LowerBody(state_, frame.s, k, frame.bounds.axis_values, bounds_.simplifier, read));
    }
    if (op.is_reduction()) {
      std::vector<ir::Expr> accumulators;
      for (int k = 0; k < op.num_outputs(); ++k) {
        accumulators.push_back(pool_.Load(SlotOf(frame.s, k), indices, op.type(k)));
      }
      values = dag::Combine(op.combiner(), accumulators, values, pool_);
    }
    if (!frame.bounds.fill_guards.empty()) {
      ir::Expr inside = nullptr;
      for (ir::Expr guard : frame.bounds.fill_guards)
        inside = inside == nullptr ? guard : pool_.And(inside, guard);
      for (int k = 0; k < op.num_outputs(); ++k) {
        const ir::Type type = op.type(k);
        const ir::Expr zero = type.is_float() ? pool_.Float(0, type) : pool_.Int(0, type);
        values[k] = pool_.If(inside, values[k], zero);
      }
    }
    return StoreAll(frame, indices, values);
  }

  ir::Stmt StoreAll(const StageFrame& frame, const std::vector<ir::Expr>& indices,
                    const std::vector<ir::Expr>& values) {
    std::vector<ir::Stmt> stores;
    for (size_t k = 0; k < values.size(); ++k) {
      stores.push_back(
          ir::MakeStore(pool_, SlotOf(frame.s, static_cast<int>(k)), frame.s, indices, values[k]));
    }
    return ir::MakeSeq(pool_, stores);
  }

  // The initialisation of a reduction: its spatial loops from first_reduce on, with variables of
  // their own.
  ir::Stmt EmitInit(const StageFrame& frame) {
    const Stage& stage = frame.stage;
    const int n = static_cast<int>(stage.loops.size());
    std::vector<ir::Linear> loop_values(n);
    std::vector<int32_t> vars = frame.bounds.loop_vars;
    for (int i = 0; i < n; ++i) {
      if (vars[i] < 0) continue;
      if (i >= frame.first_reduce) {
        if (stage.loop(i).kind != IterKind::kSpatial) continue;
        bounds_.owners.push_back({frame.s, i});
        vars[i] = bounds_.simplifier.AddVar(frame.bounds.iter_extents[stage.loops[i].iter]);
      }
      loop_values[i] = bounds_.simplifier.Var(vars[i]);
    }
    const std::vector<ir::Linear> values =
        IterValues(stage, frame.bounds.iter_extents, loop_values, bounds_.simplifier);

    std::vector<ir::Expr> identities;
    for (int k = 0; k < stage.op->num_outputs(); ++k) {
      identities.push_back(dag::ReduceIdentity(stage.op->combiner(), k, stage.op->type(k), pool_));
    }
    ir::Stmt body = StoreAll(frame, StoreIndices(frame, values), identities);
    for (ir::Expr guard :
         Guards(stage, frame.bounds, values, /*reductions=*/false, bounds_.simplifier)) {
      if (frame.tile == StageFrame::kWholeTile || StandsAround(frame, guard)) continue;
      body = ir::MakeIf(pool_, guard, body);
    }
    for (int i = n; i-- > frame.first_reduce;) {
      if (vars[i] < 0 || stage.loop(i).kind != IterKind::kSpatial) continue;
      body = ir::MakeFor(pool_, vars[i], frame.bounds.iter_extents[stage.loops[i].iter],
                         KindOf(stage.annotation(i)), body);
    }
    return body;
  }

  const State& state_;
  Bounds& bounds_;
  ir::ExprPool& pool_;
  const bool gpu_;
  Status error_;
  ir::Program program_;
  std::vector<std::vector<int32_t>> slots_;  // [stage][output] -> buffer, -1: not made yet
  std::vector<std::vector<int>> attached_;   // [stage] -> stages attached to it, ascending
  Names stage_names_, buffer_names_;
};

}  // namespace

StatusOr<ir::Program> BuildNests(const State& state, Bounds& bounds, bool gpu) {
  return NestBuilder(state, bounds, gpu).Build();
}

}  // namespace kiln::lower
