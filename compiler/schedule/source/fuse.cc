#include "compiler/schedule/source/kinds.h"

namespace kiln::schedule {

void PrintSource(const FuseStep& step, SourcePrinter& out) {
  const std::string fused = out.Fused(step.stage_id, step.loops);
  out.Line("{} = s[{}].fuse({})", fused, out.Stage(step.stage_id),
           out.Loops(step.stage_id, step.loops));
}

StatusOr<StepPtr> ReadFuse(SourceCall& call) {
  std::vector<int> loops = call.Loops("a loop");
  call.ResultsAre({.stage = call.stage(), .first = loops.empty() ? 0 : loops.front(), .count = 1});
  return call.Make<FuseStep>(call.stage(), std::move(loops));
}

}  // namespace kiln::schedule
