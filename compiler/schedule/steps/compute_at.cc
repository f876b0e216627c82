#include "compiler/dag/limits.h"
#include "compiler/schedule/steps/hash.h"
#include "compiler/schedule/steps/legality.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

// Returns true if `target` reads `stage`, directly or through others. Readers have greater numbers.
bool IsUpstream(const dag::Dag& dag, int stage, int target) {
  if (target <= stage) return false;
  absl::InlinedVector<bool, 32> reads(target + 1, false);
  reads[stage] = true;
  for (int i = stage + 1; i <= target; ++i) {
    for (int producer : dag.producers(i)) reads[i] = reads[i] || reads[producer];
  }
  return reads[target];
}

Status CheckTarget(const State& state, int stage, int target, int loop) {
  if (target < 0 || target >= state.num_stages()) {
    return InvalidArgument("target stage {} does not exist, the state has stages 0 to {}", target,
                           state.num_stages() - 1);
  }
  const std::string& name = state.dag()->op(target).name();
  if (target == stage) return InvalidArgument("a stage cannot be computed at itself");
  if (state.stage(target).is_placeholder()) {
    return InvalidArgument("target stage {} ({}) is a placeholder and has no loops", target, name);
  }
  if (state.attach(target).kind == Attach::kInlined) {
    return InvalidArgument("target stage {} ({}) is inlined; expected a stage with loops", target,
                           name);
  }
  if (!IsUpstream(*state.dag(), stage, target)) {
    return InvalidArgument(
        "target stage {} ({}) does not read it, directly or through others; its readers are {}",
        target, name, DescribeStages(state, state.Consumers(stage)));
  }
  return Annotate(CheckLoop(state, target, loop),
                  fmt::format("target stage {} ({})", target, name));
}

// Limits loops in loops and buffers in buffers, because all walks over the nest are recursive.
Status CheckDepth(const State& state, int stage, int target, int loop) {
  if (state.NumAttached(target) >= dag::kMaxStageLoops) {
    return InvalidArgument("{} stages are computed inside target stage {} already, expected fewer",
                           state.NumAttached(target), target);
  }
  int depth = loop + 1;
  for (Attach at = state.attach(target); at.kind == Attach::kIter && depth <= dag::kMaxNestLoops;
       at = state.attach(at.stage)) {
    depth += at.loop + 1;
  }
  depth += state.NumAttached(stage) > 0 ? state.NestDepth()
                                        : static_cast<int>(state.stage(stage).loops.size());
  if (depth <= dag::kMaxNestLoops) return OkStatus();
  return InvalidArgument("{} or more loops would stand in each other, expected at most {}", depth,
                         dag::kMaxNestLoops);
}

}  // namespace

StatusOr<StepPtr> ComputeAtStep::Parse(StepReader& reader) {
  const int stage = reader.Int("stage");
  const int target_stage = reader.Int("target_stage");
  const int target_loop = reader.Int("target_loop");
  return reader.Make<ComputeAtStep>(stage, target_stage, target_loop);
}

// Attachments cannot form a cycle, because a target is always downstream.
Status ComputeAtStep::ApplyTo(State& state) const {
  KILN_RETURN_IF_ERROR(CheckComputes(state, stage_id));
  KILN_RETURN_IF_ERROR(CheckTarget(state, stage_id, target_stage, target_loop));
  KILN_RETURN_IF_ERROR(CheckDepth(state, stage_id, target_stage, target_loop));
  for (IterVar& iter : state.MutableStage(stage_id).iters) iter.extent = kUnknownExtent;
  state.SetAttach(stage_id, {Attach::kIter, target_stage, target_loop});
  return OkStatus();
}

std::string ComputeAtStep::ToJson() const {
  return fmt::format("[\"CA\", {}, {}, {}]", stage_id, target_stage, target_loop);
}

uint64_t ComputeAtStep::Hash() const {
  return StepHash(kTag).Add(stage_id).Add(target_stage).Add(target_loop).value();
}

}  // namespace kiln::schedule
