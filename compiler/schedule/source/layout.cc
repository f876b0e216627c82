#include <fmt/ranges.h>

#include "compiler/dag/limits.h"
#include "compiler/schedule/source/kinds.h"

namespace kiln::schedule {

void PrintSource(const LayoutStep& step, SourcePrinter& out) {
  out.Line("s[{}].layout({})", out.Stage(step.stage_id), fmt::join(step.order, ", "));
}

StatusOr<StepPtr> ReadLayout(SourceCall& call) {
  std::vector<int> order = call.Ints("the number of a spatial axis", 0, dag::kMaxAxesOfSteps);
  return call.Make<LayoutStep>(call.stage(), std::move(order));
}

}  // namespace kiln::schedule
