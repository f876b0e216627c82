#include "compiler/schedule/primitives.h"
#include "compiler/schedule/steps/hash.h"
#include "compiler/schedule/steps/legality.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {

StatusOr<StepPtr> BufferingStep::Parse(StepReader& reader) {
  const int stage = reader.Int("stage");
  const int depth = reader.Int("depth");
  return reader.Make<BufferingStep>(stage, depth);
}

Status BufferingStep::ApplyTo(State& state) const {
  KILN_RETURN_IF_ERROR(CheckComputes(state, stage_id));
  if (depth < 1 || depth > 2) {
    return InvalidArgument("depth {} is out of range; expected 1, or 2 to fetch ahead", depth);
  }
  state.MutableStage(stage_id).buffering = depth;
  return OkStatus();
}

std::string BufferingStep::ToJson() const {
  return fmt::format("[\"BF\", {}, {}]", stage_id, depth);
}

std::string BufferingStep::ToPrimitives(const State& before, const State&) const {
  return fmt::format("s[{}].buffering({})\n", StageVar(before, stage_id), depth);
}

uint64_t BufferingStep::Hash() const { return StepHash(kTag).Add(stage_id).Add(depth).value(); }

}  // namespace kiln::schedule
