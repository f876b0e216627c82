#include <algorithm>
#include <numeric>

#include "compiler/schedule/source/kinds.h"

namespace kiln::schedule {

void PrintSource(const ReorderStep& step, SourcePrinter& out) {
  out.Line("s[{}].reorder({})", out.Stage(step.stage_id), out.Loops(step.stage_id, step.order));
}

// Loops that are not named stay at their places. The named loops exchange places, as in TVM.
StatusOr<StepPtr> ReadReorder(SourceCall& call) {
  const std::vector<int> named = call.Loops("a loop");
  std::vector<int> order(call.state().stage(call.stage()).loops.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<int> places = named;
  std::sort(places.begin(), places.end());
  if (std::adjacent_find(places.begin(), places.end()) != places.end())
    call.Fail("each loop once, found one twice");
  for (size_t i = 0; call.ok() && i < named.size(); ++i) order[places[i]] = named[i];
  return call.Make<ReorderStep>(call.stage(), std::move(order));
}

}  // namespace kiln::schedule
