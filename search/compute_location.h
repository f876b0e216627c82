// Where stages that are not tiled are computed (facts §3.5 "ChangeComputeLocation"; CPU).
#pragma once

#include <utility>
#include <vector>

#include "base/rng.h"
#include "compiler/schedule/state.h"

namespace kiln::search {

// Where a stage may be computed: (stage, loop) pairs (facts §3.5 "Candidate list"). The extents of
// `state` must be filled.
std::vector<std::pair<int, int>> ComputeLocations(const schedule::State& state, int stage);

// The stages that may be moved, the last first: computed ones that are neither tiled, nor worth
// tiling, nor outputs.
std::vector<int> MovableStages(const schedule::State& state);

// Moves a stage inline, to root or into one of ComputeLocations; by chance it stays.
Status MoveStage(schedule::State& state, int stage, Rng& rng);

}  // namespace kiln::search
