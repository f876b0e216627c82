#include <fmt/ranges.h>

#include "compiler/dag/limits.h"
#include "compiler/schedule/source/kinds.h"

namespace kiln::schedule {

void PrintSource(const CacheReadStep& step, SourcePrinter& out) {
  const std::string stage = out.Stage(step.stage_id);
  std::vector<std::string> readers;
  for (int reader : step.readers) readers.push_back(out.Stage(reader));
  const std::string order =
      step.order.empty() ? "" : fmt::format(", order=[{}]", fmt::join(step.order, ", "));
  out.Line("{} = s.cache_read({}, \"{}\", [{}]{})", out.NewStage(step.stage_id + 1), stage,
           step.scope, fmt::join(readers, ", "), order);
}

StatusOr<StepPtr> ReadCacheRead(SourceCall& call) {
  const int stage = call.Stage("the stage that is read");
  std::string scope(call.Text("the scope, \"shared\" or \"local\""));
  std::vector<int> readers = call.Stages("the stages that read it");
  std::vector<int> order;
  if (call.Has("order")) {
    const std::vector<int64_t> dimensions = call.IntsOf("order", 0, dag::kMaxAxesOfSteps);
    order.assign(dimensions.begin(), dimensions.end());
  }
  call.ResultsAre({.new_stage = stage + 1});
  return call.Make<CacheReadStep>(stage, std::move(scope), std::move(readers), std::move(order));
}

}  // namespace kiln::schedule
