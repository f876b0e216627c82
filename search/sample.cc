#include "search/sample.h"

#include <algorithm>

#include "compiler/dag/access_analysis.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/steps.h"
#include "search/factorization.h"
#include "search/sample_unroll.h"
#include "search/tiling.h"

namespace kiln::search {
namespace {

using schedule::Annotation;
using schedule::Attach;
using schedule::IterKind;
using schedule::Stage;
using schedule::State;
using schedule::StepPtr;

constexpr int kCpuUnrollSteps[] = {0, 16, 64, 512};

bool Computed(const State& state, int s) {
  return !state.stage(s).is_placeholder() && state.attach(s).kind != Attach::kInlined;
}

bool IsReduce(const Stage& stage, int loop) {
  return stage.loop(loop).kind == IterKind::kReduce || stage.loop(loop).kind == IterKind::kMixed;
}

// Untiled, untileable stages go inline, to root or into a reader.
Status ChangeComputeLocations(State& state, Rng& rng) {
  const dag::AccessAnalysis analysis(*state.dag());
  for (int s = state.num_stages() - 1; s >= 0; --s) {
    if (!Computed(state, s) || IsTiled(state.stage(s)) || analysis.needs_multi_level_tiling(s))
      continue;
    if (state.dag()->is_output(s)) continue;
    const std::vector<std::pair<int, int>> locations = ComputeLocations(state, s);
    const int64_t choice = UniformInt(rng, static_cast<int64_t>(locations.size()) + 2);
    if (choice == 0) {
      if (!HasReduceLoop(state.stage(s)) && state.attach(s).kind == Attach::kIter) {
        KILN_RETURN_IF_ERROR(state.Apply(std::make_shared<schedule::ComputeInlineStep>(s)));
      }
    } else if (choice == 1) {
      if (state.attach(s).kind != Attach::kRoot) {
        KILN_RETURN_IF_ERROR(state.Apply(std::make_shared<schedule::ComputeRootStep>(s)));
      }
    } else {
      const auto [stage, loop] = locations[choice - 2];
      KILN_RETURN_IF_ERROR(state.Apply(std::make_shared<schedule::ComputeAtStep>(s, stage, loop)));
    }
  }
  return OkStatus();
}

// Fuses outer loops from `first` on and makes them parallel; where there is nothing to run in
// parallel, goes on inside the stages attached there.
Status AnnotateParallel(State& state, int s, int first, int num_cores) {
  const Stage stage = state.stage(s);
  const int n = static_cast<int>(stage.loops.size());
  std::vector<int> to_fuse;
  int64_t degree = 1;
  int loop = first;
  for (; loop < n; ++loop) {
    if (IsReduce(stage, loop) || stage.annotation(loop) != Annotation::kNone) break;
    to_fuse.push_back(loop);
    degree *= stage.loop(loop).extent;
    if (degree > int64_t{num_cores} * 16 || state.HasAttached(s, loop)) break;
  }
  if (degree == 1 && loop < n && state.HasAttached(s, loop)) {
    for (int attached : state.AttachedTo(s, loop)) {
      if (!state.stage(attached).is_placeholder())
        KILN_RETURN_IF_ERROR(AnnotateParallel(state, attached, 0, num_cores));
    }
    KILN_RETURN_IF_ERROR(AnnotateParallel(state, s, loop + 1, num_cores));
  }
  if (to_fuse.empty()) return OkStatus();
  if (to_fuse.size() > 1)
    KILN_RETURN_IF_ERROR(state.Apply(std::make_shared<schedule::FuseStep>(s, to_fuse)));
  return state.Apply(std::make_shared<schedule::AnnotateStep>(s, first, Annotation::kParallel));
}

Status ParallelizeRoots(State& state, int num_cores) {
  for (int s = 0; s < state.num_stages(); ++s) {
    if (state.stage(s).is_placeholder() || state.attach(s).kind != Attach::kRoot) continue;
    KILN_RETURN_IF_ERROR(AnnotateParallel(state, s, 0, num_cores));
  }
  return OkStatus();
}

Status AnnotateVectorize(State& state, int max_lanes, Rng& rng) {
  for (int s = 0; s < state.num_stages(); ++s) {
    if (!Computed(state, s)) continue;
    const Stage& stage = state.stage(s);
    const int n = static_cast<int>(stage.loops.size());
    const bool tiled = IsTiled(stage);
    int64_t lanes = 1;
    int fusible = 0;
    while (fusible < n) {
      const int loop = n - 1 - fusible;
      if (state.HasAttached(s, loop) || IsReduce(stage, loop) ||
          stage.annotation(loop) != Annotation::kNone)
        break;
      if (tiled && fusible != 0) break;
      lanes *= stage.loop(loop).extent;
      if (lanes > max_lanes) break;
      ++fusible;
    }
    if (fusible == 0) continue;
    if (fusible > 1) fusible = 1 + static_cast<int>(UniformInt(rng, fusible - 1));
    if (fusible > 1) {
      std::vector<int> loops;
      for (int i = n - fusible; i < n; ++i) loops.push_back(i);
      KILN_RETURN_IF_ERROR(state.Apply(std::make_shared<schedule::FuseStep>(s, loops)));
    }
    KILN_RETURN_IF_ERROR(state.Apply(
        std::make_shared<schedule::AnnotateStep>(s, n - fusible, Annotation::kVectorize)));
  }
  return OkStatus();
}

}  // namespace

StatusOr<State> FillTileSizes(const Sketch& sketch, const Parameters& parameters, Rng& rng) {
  std::vector<StepPtr> steps = sketch.steps;
  for (StepPtr& step : steps) {
    if (step->tag() != "SP") continue;
    const auto& split = static_cast<const schedule::SplitStep&>(*step);
    if (std::find(split.lengths.begin(), split.lengths.end(), 0) == split.lengths.end()) continue;
    step = std::make_shared<schedule::SplitStep>(
        split.stage_id, split.loop, split.extent,
        RandomFactorization(split.extent, static_cast<int>(split.lengths.size()),
                            parameters.max_innermost_split_factor, rng),
        split.inner_to_outer);
  }
  return schedule::Replay(sketch.state.initial_dag(), steps);
}

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
    if (!reduce && seen_reduce) break;  // the inner tile
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

StatusOr<State> SampleCpu(const Sketch& sketch, const Task& task, const Parameters& parameters,
                          Rng& rng) {
  KILN_ASSIGN_OR_RETURN(State state, FillTileSizes(sketch, parameters, rng));
  if (parameters.change_compute_location) {
    KILN_ASSIGN_OR_RETURN(state, lower::FillExtents(state));
    KILN_RETURN_IF_ERROR(ChangeComputeLocations(state, rng));
  }
  KILN_ASSIGN_OR_RETURN(state, lower::FillExtents(state));
  KILN_RETURN_IF_ERROR(ParallelizeRoots(state, std::max(1, task.hardware.num_cores)));
  KILN_RETURN_IF_ERROR(AnnotateUnroll(state, kCpuUnrollSteps, rng));
  KILN_ASSIGN_OR_RETURN(state, lower::FillExtents(state));
  KILN_RETURN_IF_ERROR(AnnotateVectorize(state, parameters.max_vectorize_size, rng));
  return state;
}

}  // namespace kiln::search
