#include "search/sampling/compute_location.h"

#include "compiler/dag/access_analysis.h"
#include "compiler/schedule/inlining.h"
#include "compiler/schedule/steps/steps.h"
#include "search/space/tiling.h"

namespace kiln::search {
namespace {

using schedule::Annotation;
using schedule::Attach;
using schedule::IterKind;
using schedule::Stage;
using schedule::State;

bool IsReduce(const Stage& stage, int loop) {
  return stage.loop(loop).kind == IterKind::kReduce || stage.loop(loop).kind == IterKind::kMixed;
}

}  // namespace

std::vector<std::pair<int, int>> ComputeLocations(const State& state, int s) {
  std::vector<std::pair<int, int>> locations;
  const std::vector<int> consumers = state.Consumers(s);
  if (consumers.size() != 1) return locations;
  const int target = consumers[0];
  const Stage& stage = state.stage(target);
  const bool tiled = IsTiled(stage);
  const bool attached = state.attach(target).kind == Attach::kIter;
  bool seen_reduce = false;
  for (int loop = 0; loop < static_cast<int>(stage.loops.size()); ++loop) {
    const bool reduce = IsReduce(stage, loop);
    if (reduce && !tiled) break;
    if (!reduce && seen_reduce) break;  // the inner tile begins
    seen_reduce = seen_reduce || reduce;
    if (stage.annotation(loop) == Annotation::kUnroll) break;
    if (stage.loop(loop).extent == 1) continue;
    if (attached && !reduce && schedule::LoopLevel(stage, loop) == 0) continue;
    locations.emplace_back(target, loop);
    if (state.HasAttached(target, loop)) break;
  }
  if (!attached) return locations;
  const int outer = state.attach(target).stage;
  const Stage& outer_stage = state.stage(outer);
  for (int loop = 0; loop < static_cast<int>(outer_stage.loops.size()); ++loop) {
    if (IsReduce(outer_stage, loop) || state.HasAttached(outer, loop) ||
        outer_stage.annotation(loop) == Annotation::kUnroll) {
      break;
    }
    if (outer_stage.loop(loop).extent == 1) continue;
    locations.emplace_back(outer, loop);
  }
  return locations;
}

std::vector<int> MovableStages(const State& state) {
  const dag::AccessAnalysis analysis(*state.dag());
  std::vector<int> stages;
  for (int s = state.num_stages() - 1; s >= 0; --s) {
    if (state.stage(s).is_placeholder() || state.attach(s).kind == Attach::kInlined ||
        IsTiled(state.stage(s)) || analysis.needs_multi_level_tiling(s) ||
        state.dag()->is_output(s)) {
      continue;
    }
    stages.push_back(s);
  }
  return stages;
}

Status MoveStage(State& state, int s, Rng& rng) {
  const std::vector<std::pair<int, int>> locations = ComputeLocations(state, s);
  const int64_t choice = UniformInt(rng, static_cast<int64_t>(locations.size()) + 2);
  if (choice == 0) {
    if (HasReduceLoop(state.stage(s)) || state.attach(s).kind != Attach::kIter ||
        !schedule::CheckInlinedSize(state, s).ok())
      return OkStatus();
    return state.Apply(std::make_shared<schedule::ComputeInlineStep>(s));
  }
  if (choice == 1) {
    if (state.attach(s).kind == Attach::kRoot) return OkStatus();
    return state.Apply(std::make_shared<schedule::ComputeRootStep>(s));
  }
  const auto [stage, loop] = locations[choice - 2];
  return state.Apply(std::make_shared<schedule::ComputeAtStep>(s, stage, loop));
}

}  // namespace kiln::search
