#include "search/sampling/sample.h"

#include <algorithm>

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

StatusOr<State> SampleCpu(const Sketch& sketch, const Task& task, const Parameters& parameters,
                          Rng& rng) {
  KILN_ASSIGN_OR_RETURN(State state, FillTileSizes(sketch, parameters, rng, task.stop));
  if (parameters.change_compute_location) {
    KILN_ASSIGN_OR_RETURN(state, lower::FillExtents(state, task.stop));
    for (int s : MovableStages(state)) {
      if (task.stop.stop_requested()) return Cancelled("stopped");
      KILN_RETURN_IF_ERROR(MoveStage(state, s, rng));
    }
  }
  return AnnotateCpu(std::move(state), CpuLimitsOf(task, parameters), {}, rng);
}

StatusOr<State> Sample(const Sketch& sketch, const Task& task, const Parameters& parameters,
                       Rng& rng) {
  return task.target.is_gpu() ? SampleGpu(sketch, task, parameters, rng)
                              : SampleCpu(sketch, task, parameters, rng);
}

}  // namespace kiln::search
