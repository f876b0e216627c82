#include "compiler/lower/nest.h"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "compiler/lower/body.h"
#include "compiler/lower/iteration.h"

namespace kiln::lower {
namespace {

using schedule::Annotation;
using schedule::Attach;
using schedule::IterKind;
using schedule::Stage;
using schedule::State;

ir::LoopKind KindOf(Annotation annotation) {
  switch (annotation) {
    case Annotation::kUnroll: return ir::LoopKind::kUnrolled;
    case Annotation::kVectorize: return ir::LoopKind::kVectorized;
    case Annotation::kParallel: return ir::LoopKind::kParallel;
    case Annotation::kVThread: return ir::LoopKind::kVThread;
    case Annotation::kBlockX: return ir::LoopKind::kBlockX;
    case Annotation::kBlockY: return ir::LoopKind::kBlockY;
    case Annotation::kBlockZ: return ir::LoopKind::kBlockZ;
    case Annotation::kThreadX: return ir::LoopKind::kThreadX;
    case Annotation::kThreadY: return ir::LoopKind::kThreadY;
    case Annotation::kThreadZ: return ir::LoopKind::kThreadZ;
    default: return ir::LoopKind::kSerial;
  }
}

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
  NestBuilder(const State& state, Bounds& bounds) : state_(state), bounds_(bounds), pool_(*bounds.pool) {}

  ir::Program Build() {
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
      program_.kernels.push_back(std::move(kernel));
    }
    MakeLoopVars();
    return std::move(program_);
  }

 private:
  // ---- tables

  void MakeStages() {
    for (int s = 0; s < state_.num_stages(); ++s) {
      program_.stages.push_back({stage_names_.Unique(state_.stage(s).op->name()), UnrollLimit(s)});
    }
  }

  // The stage's own pragma, or that of the nest it is attached to.
  int32_t UnrollLimit(int s) const {
    while (state_.stage(s).auto_unroll_max_step == 0 && state_.attach(s).kind == Attach::kIter) s = state_.attach(s).stage;
    return state_.stage(s).auto_unroll_max_step;
  }

  // Arguments of the program: inputs and outputs as the initial DAG lists them, then whole intermediate tensors.
  void MakeArguments() {
    slots_.resize(state_.num_stages());
    const dag::Dag& dag = *state_.dag();
    for (int s = 0; s < state_.num_stages(); ++s) slots_[s].assign(state_.stage(s).op->num_outputs(), -1);
    for (const dag::Tensor& t : dag.arguments()) {
      AddBuffer(t.op, t.output, dag.op(t.op).is_placeholder() ? ir::Scope::kInput : ir::Scope::kOutput,
                state_.stage(t.op).op->shape());
    }
    for (int s = 0; s < state_.num_stages(); ++s) {
      if (!bounds_.stages[s].computed || state_.attach(s).kind != Attach::kRoot) continue;
      for (int k = 0; k < state_.stage(s).op->num_outputs(); ++k) {
        if (slots_[s][k] < 0) AddBuffer(s, k, ir::Scope::kWorkspace, PaddedShape(s));
      }
    }
  }

  void AddBuffer(int s, int output, ir::Scope scope, std::vector<int64_t> shape) {
    slots_[s][output] = static_cast<int32_t>(program_.buffers.size());
    const dag::Operator& op = *state_.stage(s).op;
    std::string name = op.name();
    if (op.num_outputs() > 1) name += fmt::format(".v{}", output);
    program_.buffers.push_back({buffer_names_.Unique(std::move(name)), op.type(output), std::move(shape), scope, 0});
  }

  // The region's shape, with the dimension inside the aligned axis enlarged until its stride fits storage_align.
  std::vector<int64_t> PaddedShape(int s) const {
    const Stage& stage = state_.stage(s);
    std::vector<int64_t> shape = bounds_.stages[s].region_extent;
    const int inner = stage.align_axis + 1;
    if (stage.align_axis < 0 || inner >= static_cast<int>(shape.size())) return shape;
    int64_t rest = 1;
    for (size_t d = inner + 1; d < shape.size(); ++d) rest *= shape[d];
    for (int64_t extent = shape[inner]; extent < shape[inner] + stage.align_factor; ++extent) {
      if ((extent * rest) % stage.align_factor == stage.align_offset % stage.align_factor) {
        shape[inner] = extent;
        break;
      }
    }
    return shape;
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
    int first_reduce;                    // loop number; number of loops when there is none
    std::vector<int> guard_levels;       // per guard: the loop at which all its variables are known, -1: outside the stage
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
    for (ir::Expr guard : frame.bounds.guards) frame.guard_levels.push_back(GuardLevel(frame, guard));
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

  ir::Stmt WrapGuards(const StageFrame& frame, int level, ir::Stmt body) {
    ir::Expr condition = nullptr;
    for (size_t g = 0; g < frame.guard_levels.size(); ++g) {
      if (frame.guard_levels[g] != level) continue;
      condition = condition == nullptr ? frame.bounds.guards[g] : pool_.And(condition, frame.bounds.guards[g]);
    }
    return condition == nullptr ? body : ir::MakeIf(pool_, condition, body);
  }

  // Loops i.. of the main nest.
  ir::Stmt EmitLoops(const StageFrame& frame, int i) {
    if (i == static_cast<int>(frame.stage.loops.size())) return EmitStores(frame);
    ir::Stmt body = EmitLoops(frame, i + 1);
    const std::vector<int>& attached = attached_[frame.s];
    for (size_t k = attached.size(); k-- > 0;) {
      if (state_.attach(attached[k]).loop == i) body = EmitAttached(attached[k], body);
    }
    body = WrapGuards(frame, i, body);
    const int32_t var = frame.bounds.loop_vars[i];
    if (var >= 0) {
      const int64_t extent = frame.bounds.iter_extents[frame.stage.loops[i].iter];
      body = ir::MakeFor(pool_, var, extent, KindOf(frame.stage.annotation(i)), body);
    }
    if (i == frame.first_reduce) {
      const ir::Stmt both[] = {EmitInit(frame), body};
      body = ir::MakeSeq(pool_, both);
    }
    return body;
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
      const bool shared = state_.stage(s).op->name().ends_with(".shared");
      for (int k = 0; k < state_.stage(s).op->num_outputs(); ++k) {
        AddBuffer(s, k, shared ? ir::Scope::kShared : ir::Scope::kLocal, PaddedShape(s));
      }
    }
    return slots_[s][output];
  }

  ir::Expr EmitRead(int producer, int output, const std::vector<ir::Linear>& indices, ir::Type type) {
    const bool local = state_.attach(producer).kind == Attach::kIter;
    std::vector<ir::Expr> exprs;
    exprs.reserve(indices.size());
    for (size_t d = 0; d < indices.size(); ++d) {
      exprs.push_back(bounds_.simplifier.ToExpr(local ? indices[d] - bounds_.stages[producer].region_min[d] : indices[d]));
    }
    return pool_.Load(SlotOf(producer, output), exprs, type);
  }

  // Where the stage stores: inside its region when attached.
  std::vector<ir::Expr> StoreIndices(const StageFrame& frame, const std::vector<ir::Linear>& iter_values) {
    const bool local = state_.attach(frame.s).kind == Attach::kIter;
    std::vector<ir::Expr> indices;
    for (size_t d = 0; d < frame.stage.op->axes().size(); ++d) {
      indices.push_back(bounds_.simplifier.ToExpr(local ? iter_values[d] : frame.bounds.region_min[d] + iter_values[d]));
    }
    return indices;
  }

  ir::Stmt EmitStores(const StageFrame& frame) {
    const dag::Operator& op = *frame.stage.op;
    const std::vector<ir::Expr> indices = StoreIndices(frame, frame.bounds.iter_values);
    std::vector<ir::Expr> values;
    const auto read = [&](int producer, int output, const std::vector<ir::Linear>& at, ir::Type type) {
      return EmitRead(producer, output, at, type);
    };
    for (int k = 0; k < op.num_outputs(); ++k) {
      values.push_back(LowerBody(state_, frame.s, k, frame.bounds.axis_values, bounds_.simplifier, read));
    }
    if (op.is_reduction()) {
      std::vector<ir::Expr> accumulators;
      for (int k = 0; k < op.num_outputs(); ++k) {
        accumulators.push_back(pool_.Load(SlotOf(frame.s, k), indices, op.type(k)));
      }
      values = dag::Combine(op.combiner(), accumulators, values, pool_);
    }
    return StoreAll(frame, indices, values);
  }

  ir::Stmt StoreAll(const StageFrame& frame, const std::vector<ir::Expr>& indices, const std::vector<ir::Expr>& values) {
    std::vector<ir::Stmt> stores;
    for (size_t k = 0; k < values.size(); ++k) {
      stores.push_back(ir::MakeStore(pool_, SlotOf(frame.s, static_cast<int>(k)), frame.s, indices, values[k]));
    }
    return ir::MakeSeq(pool_, stores);
  }

  // The initialisation of a reduction: its spatial loops from first_reduce on, with variables of their own.
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
    for (ir::Expr guard : Guards(stage, frame.bounds, values, /*reductions=*/false, bounds_.simplifier)) {
      body = ir::MakeIf(pool_, guard, body);
    }
    for (int i = n; i-- > frame.first_reduce;) {
      if (vars[i] < 0 || stage.loop(i).kind != IterKind::kSpatial) continue;
      body = ir::MakeFor(pool_, vars[i], frame.bounds.iter_extents[stage.loops[i].iter], KindOf(stage.annotation(i)), body);
    }
    return body;
  }

  const State& state_;
  Bounds& bounds_;
  ir::ExprPool& pool_;
  ir::Program program_;
  std::vector<std::vector<int32_t>> slots_;   // [stage][output] -> buffer, -1: not made yet
  std::vector<std::vector<int>> attached_;    // [stage] -> stages attached to it, ascending
  Names stage_names_, buffer_names_;
};

}  // namespace

ir::Program BuildNests(const State& state, Bounds& bounds) { return NestBuilder(state, bounds).Build(); }

}  // namespace kiln::lower
