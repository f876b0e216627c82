#include <algorithm>

#include "compiler/schedule/steps/hash.h"
#include "compiler/schedule/steps/insertion.h"
#include "compiler/schedule/steps/legality.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

Status CheckFresh(const State& state, int s) {
  const Stage& stage = state.stage(s);
  if (stage.is_placeholder()) return OkStatus();
  KILN_RETURN_IF_ERROR(CheckUntouched(state, s));
  if (state.attach(s).kind != Attach::kRoot)
    return InvalidArgument("the stage is not computed at root");
  const bool is_plain = stage.hints == MakeStage(stage.op).hints &&
                        stage.scope == MemoryScope::kByPlace && !stage.is_partial_reduction &&
                        stage.align_axis < 0 && stage.layout.empty() && stage.buffering == 1 &&
                        !stage.online;
  if (!is_plain) return InvalidArgument("a step has changed the stage, expected it as it began");
  return OkStatus();
}

// Programs take inputs and outputs in the order of the stages.
Status CheckOrder(const State& state, int stage, int before) {
  const dag::Dag& dag = *state.dag();
  if (!dag.op(stage).is_placeholder() && dag.is_output(stage))
    return InvalidArgument("an output does not move; expected a stage that another one reads");
  for (const dag::Tensor& input : dag.node(stage).inputs) {
    if (input.op < before) continue;
    return InvalidArgument("stage {} ({}) reads stage {}, which does not stand before stage {}",
                           stage, dag.op(stage).name(), input.op, before);
  }
  for (int s = before; s < stage && dag.op(stage).is_placeholder(); ++s) {
    if (!dag.op(s).is_placeholder()) continue;
    return InvalidArgument("stage {} ({}) is an input as well; inputs keep their order", s,
                           dag.op(s).name());
  }
  return OkStatus();
}

StatusOr<dag::DagPtr> WithMovedNode(const dag::Dag& dag, int stage, int before) {
  std::vector<dag::OpNode> nodes(dag.nodes().begin(), dag.nodes().end());
  for (dag::OpNode& node : nodes) {
    for (dag::Tensor& input : node.inputs) {
      if (input.op == stage) {
        input.op = before;
      } else if (input.op >= before && input.op < stage) {
        ++input.op;
      }
    }
  }
  std::rotate(nodes.begin() + before, nodes.begin() + stage, nodes.begin() + stage + 1);
  return dag::Dag::Make(std::move(nodes));
}

}  // namespace

StatusOr<StepPtr> MoveStageStep::Parse(StepReader& reader) {
  const int stage = reader.Int("stage");
  const int before = reader.Int("before");
  return reader.Make<MoveStageStep>(stage, before);
}

Status MoveStageStep::ApplyTo(State& state) const {
  if (before < 0 || before >= stage_id) {
    return InvalidArgument("the stage does not stand behind stage {}; expected stage 0 to {}",
                           before, stage_id - 1);
  }
  KILN_RETURN_IF_ERROR(CheckOrder(state, stage_id, before));
  for (int s = before; s <= stage_id; ++s) {
    KILN_RETURN_IF_ERROR(
        Annotate(CheckFresh(state, s), fmt::format("stage {} ({})", s, state.stage(s).op->name())));
  }
  const dag::Dag& dag = *state.dag();
  dag::EditKey key = BeginKey(EditKind::kMovedStage, stage_id);
  key.push_back(before);
  KILN_ASSIGN_OR_RETURN(dag::DagPtr moved, MakeOnce(dag, std::move(key), [&] {
                          return WithMovedNode(dag, stage_id, before);
                        }));
  // All of them are as they began, so fresh stages are the same.
  state.ReplaceOperators(std::move(moved));
  return OkStatus();
}

std::string MoveStageStep::ToJson() const {
  return fmt::format("[\"MV\", {}, {}]", stage_id, before);
}

uint64_t MoveStageStep::Hash() const { return StepHash(kTag).Add(stage_id).Add(before).value(); }

}  // namespace kiln::schedule
