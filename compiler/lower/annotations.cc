#include "compiler/lower/annotations.h"

namespace kiln::lower {
namespace {

using schedule::Annotation;
using schedule::IterKind;

Status CheckLoop(const schedule::Stage& stage, int i, bool gpu) {
  const Annotation a = stage.annotation(i);
  const IterKind kind = stage.loop(i).kind;
  if (kind == IterKind::kMixed) {
    return FailedPrecondition(
        "a loop that fuses spatial with reduction axes cannot be lowered; fuse axes of one kind");
  }
  const bool reduction = kind == IterKind::kReduce;
  if (schedule::IsBound(a) && !gpu) {
    return FailedPrecondition("{} has no meaning on a CPU; use parallel, vectorize or unroll",
                              schedule::AnnotationName(a));
  }
  if (a == Annotation::kParallel && gpu)
    return FailedPrecondition("parallel has no meaning on a GPU; bind the loop");
  if (a == Annotation::kTensorize) return Unimplemented("tensorize is not supported");
  if (reduction && (a == Annotation::kParallel || a == Annotation::kVectorize)) {
    return FailedPrecondition(
        "a reduction loop cannot be {}: iterations depend on each other; use rfactor first",
        a == Annotation::kParallel ? "parallel" : "vectorized");
  }
  if (reduction && a == Annotation::kCluster) {
    return FailedPrecondition(
        "the blocks of a cluster cannot share a reduction loop; use rfactor first");
  }
  return OkStatus();
}

}  // namespace

Status CheckAnnotations(const schedule::State& state, bool gpu) {
  for (int s = 0; s < state.num_stages(); ++s) {
    const schedule::Stage& stage = state.stage(s);
    if (state.attach(s).kind == schedule::Attach::kInlined) continue;
    for (int i = 0; i < static_cast<int>(stage.loops.size()); ++i) {
      const Status status = CheckLoop(stage, i, gpu);
      if (!status.ok()) {
        return Annotate(status, fmt::format("stage {} ({}), loop {} ({})", s, stage.op->name(), i,
                                            schedule::LoopName(stage, i)));
      }
    }
  }
  return OkStatus();
}

}  // namespace kiln::lower
