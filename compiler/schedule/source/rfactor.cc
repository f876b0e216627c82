#include "compiler/dag/limits.h"
#include "compiler/schedule/source/kinds.h"

namespace kiln::schedule {

void PrintSource(const RfactorStep& step, SourcePrinter& out) {
  const std::string stage = out.Stage(step.stage_id);
  const std::string loop = out.Loop(step.stage_id, step.loop);
  out.Line("{} = s.rfactor({}, {}, {})", out.NewStage(step.stage_id, {step.stage_id + 1}), stage,
           loop, step.factor_iter);
}

StatusOr<StepPtr> ReadRfactor(SourceCall& call) {
  const int stage = call.Stage("the stage of a reduction");
  const int loop = call.Loop("the reduction loop to factor out", stage);
  const auto position =
      static_cast<int>(call.Int("the place of the new axis", 0, dag::kMaxAxesOfSteps));
  call.ResultsAre({.new_stage = stage, .resets = {stage + 1}});
  return call.Make<RfactorStep>(stage, loop, position);
}

}  // namespace kiln::schedule
