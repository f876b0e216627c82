#include "compiler/schedule/steps/hash.h"
#include "compiler/schedule/steps/legality.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

constexpr int kLast = static_cast<int>(Annotation::kCluster);

}  // namespace

StatusOr<StepPtr> AnnotateStep::Parse(StepReader& reader) {
  const int stage = reader.Int("stage");
  const int loop = reader.Int("loop");
  const int annotation = reader.Int("annotation");
  if (reader.status().ok() && (annotation < 1 || annotation > kLast)) {
    return InvalidArgument("annotation {} does not exist; expected 1 (unroll) to {} (cluster)",
                           annotation, kLast);
  }
  return reader.Make<AnnotateStep>(stage, loop, static_cast<Annotation>(annotation));
}

Status AnnotateStep::ApplyTo(State& state) const {
  if (annotation == Annotation::kNone || static_cast<int>(annotation) > kLast) {
    return InvalidArgument("annotation {} does not exist; expected 1 (unroll) to {} (cluster)",
                           static_cast<int>(annotation), kLast);
  }
  KILN_RETURN_IF_ERROR(CheckPlainLoop(state, stage_id, loop));
  state.MutableStage(stage_id).loops[loop].annotation = annotation;
  return OkStatus();
}

std::string AnnotateStep::ToJson() const {
  return fmt::format("[\"AN\", {}, {}, {}]", stage_id, loop, static_cast<int>(annotation));
}

uint64_t AnnotateStep::Hash() const {
  return StepHash(kTag).Add(stage_id).Add(loop).Add(static_cast<int>(annotation)).value();
}

}  // namespace kiln::schedule
