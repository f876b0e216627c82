#include "compiler/schedule/steps/hash.h"
#include "compiler/schedule/steps/legality.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {

StatusOr<StepPtr> BufferingStep::Parse(StepReader& reader) {
  const int stage = reader.Int("stage");
  const int depth = reader.Int("depth");
  const bool asynchronous = reader.HasNext() && reader.Flag("asynchronous");
  return reader.Make<BufferingStep>(stage, depth, asynchronous);
}

Status BufferingStep::ApplyTo(State& state) const {
  KILN_RETURN_IF_ERROR(CheckComputes(state, stage_id));
  if (asynchronous && (depth < 2 || depth > kMaxDepth)) {
    return InvalidArgument("depth {} is out of range; expected 2 to {} for asynchronous copies",
                           depth, kMaxDepth);
  }
  if (!asynchronous && (depth < 1 || depth > 2)) {
    return InvalidArgument("depth {} is out of range; expected 1, or 2 to fetch ahead", depth);
  }
  Stage& stage = state.MutableStage(stage_id);
  stage.buffering = depth;
  stage.asynchronous = asynchronous;
  return OkStatus();
}

std::string BufferingStep::ToJson() const {
  return fmt::format("[\"BF\", {}, {}{}]", stage_id, depth, asynchronous ? ", 1" : "");
}

uint64_t BufferingStep::Hash() const {
  StepHash hash(kTag);
  hash.Add(stage_id).Add(depth);
  if (asynchronous) hash.Add(1);
  return hash.value();
}

uint64_t BufferingStep::ShapeHash() const { return StepHash(kTag).Add(stage_id).value(); }

}  // namespace kiln::schedule
