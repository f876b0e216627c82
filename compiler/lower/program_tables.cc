#include "compiler/lower/program_tables.h"

#include <algorithm>
#include <utility>

#include "compiler/dag/index_limit.h"
#include "compiler/lower/names.h"
#include "compiler/schedule/buffer_shape.h"

namespace kiln::lower {

using schedule::Attach;
using schedule::Stage;
using schedule::State;

ProgramTables::ProgramTables(const State& state, Bounds& bounds, const Attachments& attachments,
                             bool gpu)
    : state_(state),
      bounds_(bounds),
      attachments_(attachments),
      gpu_(gpu),
      packed_(PackedLayouts(state, bounds, gpu)),
      slots_(state.num_stages()) {
  program_.pool = bounds.pool;
  for (int s = 0; s < state.num_stages(); ++s)
    slots_[s].assign(state.stage(s).op->num_outputs(), -1);
  MakeStages();
  MakeArguments();
}

ir::Program ProgramTables::Take() {
  MakeLoopVars();
  return std::move(program_);
}

void ProgramTables::MakeStages() {
  Names names;
  for (int s = 0; s < state_.num_stages(); ++s) {
    program_.stages.push_back(
        {names.Unique(state_.stage(s).op->name()), HintsOf(s, ir::HintPlace::kStage)});
  }
}

ir::Hints ProgramTables::HintsOf(int s, ir::HintPlace place) const {
  ir::Hints hints;
  for (const ir::HintRow& row : ir::kHints) {
    if (row.place != place || (row.is_gpu_only && !gpu_)) continue;
    int from = s;
    while (row.is_inherited && state_.stage(from).hints[row.hint] == 0 &&
           state_.attach(from).kind == Attach::kIter)
      from = state_.attach(from).stage;
    hints[row.hint] = state_.stage(from).hints[row.hint];
  }
  if (gpu_ && place == ir::HintPlace::kStage && schedule::IsSwizzled(state_, s))
    hints[ir::Hint::kSwizzle] = 1;
  return hints;
}

// Makes the arguments of the program: inputs and outputs in the order of the initial DAG, then
// whole intermediate tensors.
void ProgramTables::MakeArguments() {
  const dag::Dag& dag = *state_.dag();
  // Limits are those of the initial DAG, because steps may have put copies between the input and
  // its use as an index.
  const dag::Dag& initial = *state_.initial_dag();
  std::vector<int64_t> limits;
  for (size_t a = 0; a < dag.arguments().size(); ++a) {
    const dag::Tensor& t = dag.arguments()[a];
    const dag::Operator& op = dag.op(t.op);
    const PackedInput* const packed = PackedOf(t.op);
    MakeBuffer(t.op, t.output, op.is_placeholder() ? ir::Scope::kInput : ir::Scope::kOutput,
               packed == nullptr ? op.shape() : PackedShape(packed->packing));
    if (packed != nullptr) program_.buffers.back().packing = packed->packing;
    if (!op.is_placeholder() || !op.type().is_int()) continue;
    if (limits.empty()) limits = dag::IndexLimits(initial);
    program_.buffers.back().index_limit = limits[initial.arguments()[a].op];
  }
  for (int s = 0; s < state_.num_stages(); ++s) {
    if (!bounds_.stages[s].computed || state_.attach(s).kind != Attach::kRoot) continue;
    for (int k = 0; k < state_.stage(s).op->num_outputs(); ++k) {
      if (slots_[s][k] < 0) MakeBuffer(s, k, ir::Scope::kWorkspace, ShapeOf(s));
    }
  }
}

void ProgramTables::MakeBuffer(int s, int output, ir::Scope scope, std::vector<int64_t> shape) {
  const dag::Operator& op = *state_.stage(s).op;
  std::string name = op.name();
  if (op.num_outputs() > 1) name += fmt::format(".v{}", output);
  slots_[s][output] = NewBuffer(name, op.type(output), std::move(shape), scope);
}

std::vector<int64_t> ProgramTables::ShapeOf(int s) const {
  return schedule::BufferShape(state_.stage(s), bounds_.stages[s].region_extent,
                               gpu_ && schedule::IsSwizzled(state_, s));
}

const PackedInput* ProgramTables::PackedOf(int s) const {
  const auto found = std::ranges::find(packed_, s, &PackedInput::stage);
  return found == packed_.end() ? nullptr : &*found;
}

std::vector<ir::Expr> ProgramTables::LaidOut(int s, std::vector<ir::Expr> indices) const {
  const Stage& stage = state_.stage(s);
  if (stage.layout.empty()) return indices;
  std::vector<ir::Expr> result;
  for (int axis : stage.layout) result.push_back(indices[axis]);
  return result;
}

void ProgramTables::MakeLoopVars() {
  Names names;
  for (int v = 0; v < bounds_.simplifier.num_vars(); ++v) {
    const LoopOwner owner = bounds_.owners[v];
    const arith::Interval range = bounds_.simplifier.RangeOf(program_.pool->Var(v));
    program_.vars.push_back(
        {names.Unique(schedule::LoopName(state_.stage(owner.stage), owner.loop)), range.hi + 1});
  }
}

int32_t ProgramTables::SlotOf(int s, int output) {
  if (slots_[s][output] < 0) {
    const ir::Scope scope = attachments_.IsOfCluster(s) ? ir::Scope::kCluster
                            : attachments_.IsShared(s)  ? ir::Scope::kShared
                                                        : ir::Scope::kLocal;
    for (int k = 0; k < state_.stage(s).op->num_outputs(); ++k) MakeBuffer(s, k, scope, ShapeOf(s));
  }
  return slots_[s][output];
}

int32_t ProgramTables::NewBuffer(std::string_view name, ir::Type type, std::vector<int64_t> shape,
                                 ir::Scope scope) {
  ir::Buffer buffer{Identifier(name), type, std::move(shape), scope, 0};
  // Passes that only know the program may have added buffers. Then all names of the program are
  // searched.
  if (num_named_ < program_.buffers.size()) return ir::AddBuffer(program_, std::move(buffer));
  buffer.name = names_.Unique(buffer.name);
  program_.buffers.push_back(std::move(buffer));
  return static_cast<int32_t>(num_named_++);
}

}  // namespace kiln::lower
