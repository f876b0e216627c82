#include "compiler/schedule/soundness_testing.h"

namespace kiln::schedule {
namespace {

constexpr int64_t kMaxVector = 16;

Status Refuse(const State& state, int stage, int loop, std::string_view reason) {
  return InvalidArgument("stage {} ({}): {} loop {} {}", stage, state.dag()->op(stage).name(),
                         AnnotationName(state.stage(stage).annotation(loop)),
                         LoopName(state.stage(stage), loop), reason);
}

Status CheckVisible(const State& state, int stage) {
  const Attach& attach = state.attach(stage);
  if (attach.kind != Attach::kIter) return OkStatus();
  for (int reader : state.Consumers(stage)) {
    if (IsInside(state, reader, attach.stage, attach.loop)) continue;
    return InvalidArgument(
        "stage {} ({}) is computed at loop {} of stage {} ({}), outside of which stage {} ({}) "
        "reads it",
        stage, state.dag()->op(stage).name(), attach.loop, attach.stage,
        state.dag()->op(attach.stage).name(), reader, state.dag()->op(reader).name());
  }
  return OkStatus();
}

// Returns true if any loop of `stage` before `loop`, or any loop around the stage, is parallel.
bool InsideParallel(const State& state, int stage, int loop) {
  for (int i = 0; i < loop; ++i) {
    if (state.stage(stage).annotation(i) == Annotation::kParallel) return true;
  }
  const Attach& attach = state.attach(stage);
  return attach.kind == Attach::kIter && InsideParallel(state, attach.stage, attach.loop + 1);
}

Status CheckVectorized(const State& state, int number, int loop) {
  const Stage& stage = state.stage(number);
  if (loop + 1 != static_cast<int>(stage.loops.size())) {
    return Refuse(state, number, loop, "is not innermost");
  }
  if (state.HasAttached(number, loop)) {
    return Refuse(state, number, loop, "has stages attached");
  }
  const int64_t extent = stage.loop(loop).extent;
  if (extent == kUnknownExtent || extent > kMaxVector) {
    return Refuse(state, number, loop, "has an extent that is unknown or above 16");
  }
  return OkStatus();
}

Status CheckLoopAnnotation(const State& state, int number, int loop) {
  const Stage& stage = state.stage(number);
  const Annotation annotation = stage.annotation(loop);
  if (annotation == Annotation::kNone || annotation == Annotation::kUnroll) return OkStatus();
  if (annotation != Annotation::kParallel && annotation != Annotation::kVectorize) {
    return Refuse(state, number, loop, "has no meaning on a CPU");
  }
  if (stage.loop(loop).kind != IterKind::kSpatial) {
    return Refuse(state, number, loop, "is not spatial");
  }
  if (annotation == Annotation::kVectorize) return CheckVectorized(state, number, loop);
  if (InsideParallel(state, number, loop)) {
    return Refuse(state, number, loop, "is inside another parallel loop");
  }
  return OkStatus();
}

}  // namespace

bool IsInside(const State& state, int inner, int stage, int loop) {
  if (inner == stage) return true;
  const Attach& attach = state.attach(inner);
  if (attach.kind != Attach::kIter) return false;
  if (attach.stage == stage) return attach.loop >= loop;
  return IsInside(state, attach.stage, stage, loop);
}

Status CheckSound(const State& state) {
  for (int i = 0; i < state.num_stages(); ++i) {
    if (state.stage(i).is_placeholder() || state.attach(i).kind == Attach::kInlined) continue;
    KILN_RETURN_IF_ERROR(CheckVisible(state, i));
    for (int loop = 0; loop < static_cast<int>(state.stage(i).loops.size()); ++loop) {
      KILN_RETURN_IF_ERROR(CheckLoopAnnotation(state, i, loop));
    }
  }
  return OkStatus();
}

}  // namespace kiln::schedule
