#include "compiler/schedule/fit.h"

#include "compiler/dag/text.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

// Returns the extent of the axis that the split cuts. Unknown if the loop is no axis. Also unknown
// for a partial reduction that RF made: its axes have the lengths of a split, which a search may
// have changed since the extent was noted.
int64_t AxisExtent(const State& state, const SplitStep& split) {
  if (split.stage_id < 0 || split.stage_id >= state.num_stages()) return kUnknownExtent;
  const Stage& stage = state.stage(split.stage_id);
  if (split.loop < 0 || split.loop >= static_cast<int>(stage.loops.size())) return kUnknownExtent;
  if (stage.is_partial_reduction) return kUnknownExtent;
  const IterVar& loop = stage.loop(split.loop);
  return loop.relation < 0 ? loop.extent : kUnknownExtent;
}

Status CheckExtent(const State& state, const Step& step) {
  const auto* found = As<SplitStep>(step);
  if (found == nullptr) return OkStatus();
  const SplitStep& split = *found;
  const int64_t extent = AxisExtent(state, split);
  if (extent == kUnknownExtent || split.extent <= 0 || split.extent == extent) return OkStatus();
  const Stage& stage = state.stage(split.stage_id);
  return FailedPrecondition("split #{} (SP) is of a loop of {}, found {} of stage {} ({}), of {}",
                            state.steps().size(), split.extent, LoopName(stage, split.loop),
                            split.stage_id, stage.op->name(), extent);
}

}  // namespace

Status CheckFit(std::string_view dag_text, std::string_view steps_json) {
  KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, dag::ParseDag(dag_text));
  KILN_ASSIGN_OR_RETURN(const std::vector<StepPtr> steps, ParseSteps(steps_json));
  State state(dag);
  for (const StepPtr& step : steps) {
    KILN_RETURN_IF_ERROR(CheckExtent(state, *step));
    if (const Status applied = state.Apply(step); !applied.ok()) {
      return FailedPrecondition("{}", Message(applied));
    }
  }
  return OkStatus();
}

}  // namespace kiln::schedule
