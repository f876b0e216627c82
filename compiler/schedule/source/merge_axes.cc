#include "compiler/dag/limits.h"
#include "compiler/schedule/source/kinds.h"

namespace kiln::schedule {

void PrintSource(const MergeAxesStep& step, SourcePrinter& out) {
  out.Line("s[{}].merge_axes({}, {})", out.Stage(step.stage_id), step.first, step.count);
  out.FreshLoops();
}

StatusOr<StepPtr> ReadMergeAxes(SourceCall& call) {
  const auto first =
      static_cast<int>(call.Int("the number of the first axis", 0, dag::kMaxAxesOfSteps));
  const auto count = static_cast<int>(call.Int("how many axes", 2, dag::kMaxAxesOfSteps));
  return call.Make<MergeAxesStep>(call.stage(), first, count);
}

}  // namespace kiln::schedule
