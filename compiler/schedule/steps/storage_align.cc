#include "compiler/schedule/steps/hash.h"
#include "compiler/schedule/steps/legality.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {

StatusOr<StepPtr> StorageAlignStep::Parse(StepReader& reader) {
  const int stage = reader.Int("stage");
  const int loop = reader.Int("loop");
  const int factor = reader.Int("factor");
  const int offset = reader.Int("offset");
  return reader.Make<StorageAlignStep>(stage, loop, factor, offset);
}

Status StorageAlignStep::ApplyTo(State& state) const {
  KILN_RETURN_IF_ERROR(CheckLoop(state, stage_id, loop));
  const Stage& stage = state.stage(stage_id);
  const int32_t iter = stage.loops[loop].iter;
  if (iter >= static_cast<int32_t>(stage.op->axes().size())) {
    return InvalidArgument(
        "{} is not a spatial axis of the operator; expected one that was not "
        "split or fused",
        DescribeLoop(state, stage_id, loop));
  }
  if (factor < 1 || offset < 0 || offset >= factor) {
    return InvalidArgument(
        "factor {} and offset {} are out of range; expected 0 <= offset < factor", factor, offset);
  }
  Stage& edited = state.MutableStage(stage_id);
  edited.align_axis = iter;
  edited.align_factor = factor;
  edited.align_offset = offset;
  return OkStatus();
}

std::string StorageAlignStep::ToJson() const {
  return fmt::format("[\"SA\", {}, {}, {}, {}]", stage_id, loop, factor, offset);
}

uint64_t StorageAlignStep::Hash() const {
  return StepHash(kTag).Add(stage_id).Add(loop).Add(factor).Add(offset).value();
}

uint64_t StorageAlignStep::ShapeHash() const { return StepHash(kTag).Add(stage_id).value(); }

}  // namespace kiln::schedule
