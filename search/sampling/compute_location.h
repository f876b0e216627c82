// Chooses where stages that are not tiled are computed (CPU). The rule is InitChangeComputeLocation
// of TVM v0.14 (src/auto_scheduler/search_policy/sketch_policy_rules.cc).
#pragma once

#include <utility>
#include <vector>

#include "base/numbers/rng.h"
#include "compiler/schedule/state.h"

namespace kiln::search {

// Returns the (stage, loop) pairs at which a stage may be computed. The extents of `state` must be
// filled.
std::vector<std::pair<int, int>> ComputeLocations(const schedule::State& state, int stage);

// Returns the stages that may be moved, the last first: computed stages that are not tiled, not
// worth tiling, and no outputs.
std::vector<int> MovableStages(const schedule::State& state);

// Moves a stage inline, to root or into one of ComputeLocations, at random. The stage may also
// stay.
Status MoveStage(schedule::State& state, int stage, Rng& rng);

}  // namespace kiln::search
