// Common parts of the tests of candidates for matrix units: tasks, samples, tolerances.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/ir/matrix_unit_scope.h"
#include "compiler/schedule/state.h"
#include "search/evolution/mutation.h"
#include "search/evolution/rebuild.h"
#include "search/sampling/sample_gpu.h"
#include "search/space/matrix_product.h"
#include "search/space/sketch.h"

namespace kiln::search {

inline Task MatrixTask(const dag::OpCase& c,
                       std::string_view target = "cuda -arch=sm_90 -math=tf32") {
  return Task(c.Build(), *target::ParseTarget(target), {}, "[]");
}

// Returns accepted samples of all sketches in turn, every second one with its tiles changed. There
// are `count` samples, or fewer if `draws` draws of each sketch give no more.
inline std::vector<schedule::State> MatrixCandidates(
    const Task& task, std::span<const Sketch> sketches, const Parameters& parameters, uint64_t seed,
    size_t draws, size_t count, const std::function<bool(const schedule::State&)>& accepts) {
  Rng rng(seed);
  std::vector<schedule::State> states;
  for (size_t draw = 0; draw < draws * sketches.size() && states.size() < count; ++draw) {
    const Sketch& sketch = sketches[draw % sketches.size()];
    StatusOr<schedule::State> state = SampleGpu(sketch, task, parameters, rng);
    if (state.ok() && states.size() % 2 == 1) {
      const auto mutation =
          MutateAs(MutationKind::kTileSize, task, parameters, {state->steps(), sketch.steps}, rng);
      Drop why = Drop::kIllegal;
      if (!mutation.ok()) continue;
      state = Rebuild(task, mutation->steps, why);
    }
    if (state.ok() && accepts(*state)) states.push_back(*std::move(state));
  }
  return states;
}

inline ir::MatrixUnitScope UnitOf(const schedule::State& state) {
  const std::optional<int> stage = MatrixStageOf(state);
  return stage ? ir::MatrixUnitScopeOf(state.stage(*stage).hints) : ir::MatrixUnitScope::kNone;
}

// Returns samples of all sketches that use such units.
inline std::vector<schedule::State> MatrixStates(const Task& task, ir::MatrixUnitScope scope,
                                                 uint64_t seed, size_t count) {
  Parameters parameters;
  parameters.matrix_unit_prob = 1;
  parameters.warpgroup_prob = scope == ir::MatrixUnitScope::kWarpgroup ? 1 : 0;
  return MatrixCandidates(task, GenerateSketches({task, parameters}), parameters, seed, 200, count,
                          [&](const schedule::State& state) { return UnitOf(state) == scope; });
}

// Allows the last bit of short floats, and the rounding of factors to TF32.
inline double MatrixTolerance(const dag::OpCase& c) {
  if (!c.dtype.is_float()) return 0;
  return c.dtype == ir::kFloat8E5M2 ? 0.26 : c.dtype.bits == 8 ? 0.13 : 1e-2;
}

}  // namespace kiln::search
