#include "compiler/schedule/inlining.h"
#include "compiler/schedule/steps/hash.h"
#include "compiler/schedule/steps/legality.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {

StatusOr<StepPtr> ComputeInlineStep::Parse(StepReader& reader) {
  const int stage = reader.Int("stage");
  return reader.Make<ComputeInlineStep>(stage);
}

Status ComputeInlineStep::ApplyTo(State& state) const {
  const Stage& stage = state.stage(stage_id);
  if (stage.is_placeholder()) {
    return InvalidArgument("a placeholder cannot be inlined; expected a compute stage");
  }
  if (state.dag()->is_output(stage_id)) {
    return InvalidArgument("an output cannot be inlined; expected a stage with readers");
  }
  if (stage.op->is_reduction()) {
    return InvalidArgument("a reduction cannot be inlined; expected a stage without reduce axes");
  }
  for (int i = 0; i < static_cast<int>(stage.loops.size()); ++i) {
    if (state.HasAttached(stage_id, i)) {
      return InvalidArgument("stages {} are computed at {}; expected nothing attached",
                             DescribeStages(state, state.AttachedTo(stage_id, i)),
                             DescribeLoop(state, stage_id, i));
    }
  }
  KILN_RETURN_IF_ERROR(CheckInlinedSize(state, stage_id));
  state.SetAttach(stage_id, {Attach::kInlined, -1, -1});
  return OkStatus();
}

std::string ComputeInlineStep::ToJson() const { return fmt::format("[\"CI\", {}]", stage_id); }

uint64_t ComputeInlineStep::Hash() const { return StepHash(kTag).Add(stage_id).value(); }

}  // namespace kiln::schedule
