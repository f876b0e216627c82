#include "compiler/schedule/source/kinds.h"

namespace kiln::schedule {

void PrintSource(const CacheWriteStep& step, SourcePrinter& out) {
  const std::string stage = out.Stage(step.stage_id);
  out.Line("{} = s.cache_write({}, \"{}\")", out.NewStage(step.stage_id, step.stage_id + 1), stage,
           step.scope);
}

StatusOr<StepPtr> ReadCacheWrite(SourceCall& call) {
  const int stage = call.Stage("the stage that is written");
  std::string scope(call.Text("the scope, \"shared\" or \"local\""));
  call.ResultsAre({.new_stage = stage, .reset = stage + 1});
  return call.Make<CacheWriteStep>(stage, std::move(scope));
}

}  // namespace kiln::schedule
