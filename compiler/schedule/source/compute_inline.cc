#include "compiler/schedule/source/kinds.h"

namespace kiln::schedule {

void PrintSource(const ComputeInlineStep& step, SourcePrinter& out) {
  out.Line("s[{}].compute_inline()", out.Stage(step.stage_id));
}

StatusOr<StepPtr> ReadComputeInline(SourceCall& call) {
  return call.Make<ComputeInlineStep>(call.stage());
}

}  // namespace kiln::schedule
