#include <fmt/ranges.h>

#include "compiler/schedule/source/kinds.h"

namespace kiln::schedule {

void PrintSource(const CacheReadStep& step, SourcePrinter& out) {
  const std::string stage = out.Stage(step.stage_id);
  std::vector<std::string> readers;
  for (int reader : step.readers) readers.push_back(out.Stage(reader));
  out.Line("{} = s.cache_read({}, \"{}\", [{}])", out.NewStage(step.stage_id + 1), stage,
           step.scope, fmt::join(readers, ", "));
}

StatusOr<StepPtr> ReadCacheRead(SourceCall& call) {
  const int stage = call.Stage("the stage that is read");
  std::string scope(call.Text("the scope, \"shared\" or \"local\""));
  std::vector<int> readers = call.Stages("the stages that read it");
  call.ResultsAre({.new_stage = stage + 1});
  return call.Make<CacheReadStep>(stage, std::move(scope), std::move(readers));
}

}  // namespace kiln::schedule
