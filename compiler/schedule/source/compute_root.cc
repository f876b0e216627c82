#include "compiler/schedule/source/kinds.h"

namespace kiln::schedule {

void PrintSource(const ComputeRootStep& step, SourcePrinter& out) {
  out.Line("s[{}].compute_root()", out.Stage(step.stage_id));
}

StatusOr<StepPtr> ReadComputeRoot(SourceCall& call) {
  return call.Make<ComputeRootStep>(call.stage());
}

}  // namespace kiln::schedule
