#include <fmt/ranges.h>

#include "compiler/schedule/source/kinds.h"

namespace kiln::schedule {

void PrintSource(const CacheWriteStep& step, SourcePrinter& out) {
  const std::string stage = out.Stage(step.stage_id);
  std::vector<std::string> joined;
  std::vector<int> resets = {step.stage_id + 1};
  for (const int other : step.joined) {
    joined.push_back(out.Stage(other));
    resets.push_back(other + 1);
  }
  const std::string others = joined.empty() ? "" : fmt::format(", [{}]", fmt::join(joined, ", "));
  out.Line("{} = s.cache_write({}, \"{}\"{})", out.NewStage(step.stage_id, resets), stage,
           step.scope, others);
}

StatusOr<StepPtr> ReadCacheWrite(SourceCall& call) {
  const int stage = call.Stage("the stage that is written");
  std::string scope(call.Text("the scope, \"shared\" or \"local\""));
  std::vector<int> joined;
  if (call.HasNext()) joined = call.Stages("the stages whose sums are joined");
  std::vector<int> resets = {stage + 1};
  for (const int other : joined) resets.push_back(other + 1);
  call.ResultsAre({.new_stage = stage, .resets = std::move(resets)});
  return call.Make<CacheWriteStep>(stage, std::move(scope), std::move(joined));
}

}  // namespace kiln::schedule
