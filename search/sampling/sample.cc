#include "search/sampling/sample.h"

#include <algorithm>
#include <limits>

#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/steps.h"
#include "search/sampling/annotate_cpu.h"
#include "search/sampling/compute_location.h"
#include "search/sampling/sample_gpu.h"
#include "search/space/factorization.h"
#include "search/space/uneven_tiles.h"

namespace kiln::search {
using schedule::State;
using schedule::StepPtr;

StatusOr<State> FillTileSizes(const Sketch& sketch, const Parameters& parameters, Rng& rng,
                              const std::stop_token& stop) {
  std::vector<StepPtr> steps = sketch.steps;
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto* found = schedule::As<schedule::SplitStep>(*steps[i]);
    if (found == nullptr || std::ranges::find(found->lengths, 0) == found->lengths.end()) continue;
    const schedule::SplitStep& split = *found;
    const int64_t extent = MayBeUneven(steps, i, /*gpu=*/false, parameters)
                               ? PickTileExtent(TileExtents(split.extent), parameters, rng)
                               : split.extent;
    std::vector<int64_t> lengths = RandomFactorization(
        extent, static_cast<int>(split.lengths.size()), parameters.max_innermost_split_factor, rng);
    if (extent != split.extent) {
      CutLengths(lengths, split.extent, KeptLengths(split, /*gpu=*/false, parameters));
    }
    steps[i] = std::make_shared<schedule::SplitStep>(split.stage_id, split.loop, split.extent,
                                                     std::move(lengths), split.inner_to_outer);
  }
  return schedule::Replay(sketch.state.initial_dag(), steps, stop);
}

namespace {

// Moves stages to random places.
StatusOr<State> MoveStages(State state, const Task& task, Rng& rng) {
  KILN_ASSIGN_OR_RETURN(state, lower::FillExtents(std::move(state), task.stop));
  for (int s : MovableStages(state)) {
    if (task.stop.stop_requested()) return Cancelled("stopped");
    KILN_RETURN_IF_ERROR(MoveStage(state, s, rng));
  }
  return state;
}

}  // namespace

StatusOr<State> CompleteCpuByRule(const Task& task, std::span<const StepPtr> steps,
                                  const Parameters& parameters, Rng& rng) {
  // Most statements of a body: those of a register tile of 32 vectors with some steps of its sums.
  constexpr int32_t kBody = 64;
  KILN_ASSIGN_OR_RETURN(State state, schedule::Replay(task.dag, steps, task.stop));
  if (parameters.change_compute_location && Chance(rng, 0.5)) {
    KILN_ASSIGN_OR_RETURN(state, MoveStages(std::move(state), task, rng));
  }
  CpuChoices choices;
  for (int s = 0; s < state.num_stages(); ++s) {
    choices.vector_loops[s] = std::numeric_limits<int>::max();
    choices.hints[{s, ir::Hint::kUnroll}] = kBody;
  }
  return AnnotateCpu(std::move(state), CpuLimitsOf(task, parameters), choices, rng);
}

StatusOr<State> SampleCpu(const Sketch& sketch, const Task& task, const Parameters& parameters,
                          Rng& rng) {
  KILN_ASSIGN_OR_RETURN(State state, FillTileSizes(sketch, parameters, rng, task.stop));
  if (parameters.change_compute_location) {
    KILN_ASSIGN_OR_RETURN(state, MoveStages(std::move(state), task, rng));
  }
  return AnnotateCpu(std::move(state), CpuLimitsOf(task, parameters), {}, rng);
}

StatusOr<State> Sample(const Sketch& sketch, const Task& task, const Parameters& parameters,
                       Rng& rng) {
  return task.target.is_gpu() ? SampleGpu(sketch, task, parameters, rng)
                              : SampleCpu(sketch, task, parameters, rng);
}

}  // namespace kiln::search
