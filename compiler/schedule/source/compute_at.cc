#include "compiler/schedule/source/kinds.h"

namespace kiln::schedule {

void PrintSource(const ComputeAtStep& step, SourcePrinter& out) {
  out.Line("s[{}].compute_at(s[{}], {})", out.Stage(step.stage_id), out.Stage(step.target_stage),
           out.Loop(step.target_stage, step.target_loop));
}

StatusOr<StepPtr> ReadComputeAt(SourceCall& call) {
  const int target = call.Stage("s[STAGE]");
  const int loop = call.Loop("a loop of that stage", target);
  return call.Make<ComputeAtStep>(call.stage(), target, loop);
}

}  // namespace kiln::schedule
