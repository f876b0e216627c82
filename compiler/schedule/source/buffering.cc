#include "compiler/schedule/source/kinds.h"

namespace kiln::schedule {

void PrintSource(const BufferingStep& step, SourcePrinter& out) {
  out.Line("s[{}].buffering({}{})", out.Stage(step.stage_id), step.depth,
           step.asynchronous ? ", asynchronous=True" : "");
}

StatusOr<StepPtr> ReadBuffering(SourceCall& call) {
  const auto depth = static_cast<int>(call.Int("the depth", 1, BufferingStep::kMaxDepth));
  const bool asynchronous = call.Has("asynchronous") && call.FlagOf("asynchronous");
  return call.Make<BufferingStep>(call.stage(), depth, asynchronous);
}

}  // namespace kiln::schedule
