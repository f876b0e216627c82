#include "compiler/schedule/source/kinds.h"

namespace kiln::schedule {

void PrintSource(const MoveStageStep& step, SourcePrinter& out) {
  out.Line("s[{}].move_before(s[{}])", out.Stage(step.stage_id), out.Stage(step.before));
  out.MoveStage(step.stage_id, step.before);
}

StatusOr<StepPtr> ReadMoveStage(SourceCall& call) {
  const int before = call.Stage("the stage behind it");
  call.ResultsAre({.moved = call.stage(), .moved_to = before});
  return call.Make<MoveStageStep>(call.stage(), before);
}

}  // namespace kiln::schedule
