// From a sketch to a complete CPU state: random tile sizes and annotations (Ansor, OSDI 2020,
// section 4.2).
#pragma once

#include <stop_token>

#include "base/rng.h"
#include "compiler/schedule/state.h"
#include "search/space/parameters.h"
#include "search/space/sketch.h"
#include "search/space/task.h"

namespace kiln::search {

// Fills every blank uniformly among the ordered factorizations of its extent, or of one a little
// longer (uneven_tiles.h), moves untiled stages
// to random places, then parallelizes outer loops, chooses unroll depths and vectorizes innermost
// loops. Refuses (FailedPrecondition) a draw that turns out to be illegal; draw again.
// Deterministic for the state of rng.
StatusOr<schedule::State> SampleCpu(const Sketch& sketch, const Task& task,
                                    const Parameters& parameters, Rng& rng);

// The last part of SampleCpu after the steps of a sketch without blanks: stages that may be moved
// are by chance, in every second call; inner loops are unrolled as far as registers hold their
// results, and all that can be is vectorized.
StatusOr<schedule::State> CompleteCpuByRule(const Task& task,
                                            std::span<const schedule::StepPtr> steps,
                                            const Parameters& parameters, Rng& rng);

// SampleCpu or SampleGpu, as the task's target asks.
StatusOr<schedule::State> Sample(const Sketch& sketch, const Task& task,
                                 const Parameters& parameters, Rng& rng);

// One part of it each, for tests and for mutation.
StatusOr<schedule::State> FillTileSizes(const Sketch& sketch, const Parameters& parameters,
                                        Rng& rng, const std::stop_token& stop = {});

}  // namespace kiln::search
