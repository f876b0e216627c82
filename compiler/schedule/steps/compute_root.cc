#include "compiler/schedule/steps/hash.h"
#include "compiler/schedule/steps/legality.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {

StatusOr<StepPtr> ComputeRootStep::Parse(StepReader& reader) {
  const int stage = reader.Int("stage");
  return reader.Make<ComputeRootStep>(stage);
}

Status ComputeRootStep::ApplyTo(State& state) const {
  KILN_RETURN_IF_ERROR(CheckComputes(state, stage_id));
  for (IterVar& iter : state.MutableStage(stage_id).iters) iter.extent = kUnknownExtent;
  state.SetAttach(stage_id, Attach{});
  return OkStatus();
}

std::string ComputeRootStep::ToJson() const { return fmt::format("[\"CR\", {}]", stage_id); }

uint64_t ComputeRootStep::Hash() const { return StepHash(kTag).Add(stage_id).value(); }

}  // namespace kiln::schedule
