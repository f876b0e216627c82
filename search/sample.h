// From a sketch to a complete state: random tile sizes and annotations (facts §3.5, CPU).
#pragma once

#include "base/rng.h"
#include "compiler/schedule/state.h"
#include "search/parameters.h"
#include "search/sketch.h"
#include "search/task.h"

namespace kiln::search {

// Fills every blank uniformly among the ordered factorizations of its extent, moves untiled stages
// to random places, then parallelizes outer loops, chooses unroll depths and vectorizes innermost
// loops. Refuses (FailedPrecondition) a draw that turns out to be illegal; draw again.
// Deterministic for the state of rng.
StatusOr<schedule::State> SampleCpu(const Sketch& sketch, const Task& task,
                                    const Parameters& parameters, Rng& rng);

// One part of it each, for tests and for mutation.
StatusOr<schedule::State> FillTileSizes(const Sketch& sketch, const Parameters& parameters,
                                        Rng& rng);

// Where a stage may be computed: (stage, loop) pairs (facts §3.5 "Candidate list").
std::vector<std::pair<int, int>> ComputeLocations(const schedule::State& state, int stage);

}  // namespace kiln::search
