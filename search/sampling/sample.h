// Completes a sketch to a CPU state with random tile sizes and annotations (Ansor, OSDI 2020,
// section 4.2).
#pragma once

#include <stop_token>

#include "base/numbers/rng.h"
#include "compiler/schedule/state.h"
#include "search/space/parameters.h"
#include "search/space/sketch.h"
#include "search/space/task.h"

namespace kiln::search {

// Fills every blank with a random ordered factorization of its extent, or of a slightly larger
// extent (uneven_tiles.h). Then moves untiled stages to random places, parallelizes outer loops,
// chooses unroll depths and vectorizes innermost loops. Refuses (FailedPrecondition) a draw that
// turns out to be illegal; then draw again. Deterministic for the state of rng.
StatusOr<schedule::State> SampleCpu(const Sketch& sketch, const Task& task,
                                    const Parameters& parameters, Rng& rng);

// Makes the last part of SampleCpu for the steps of a sketch whose blanks are filled. In every
// second call, on average, stages are moved at random. Inner loops are unrolled as far as registers
// hold their results, and all loops are vectorized that can be.
StatusOr<schedule::State> CompleteCpuByRule(const Task& task,
                                            std::span<const schedule::StepPtr> steps,
                                            const Parameters& parameters, Rng& rng);

// Calls SampleCpu or SampleGpu, depending on the task's target.
StatusOr<schedule::State> Sample(const Sketch& sketch, const Task& task,
                                 const Parameters& parameters, Rng& rng);

// Makes one part of a sample, for tests and for mutation.
StatusOr<schedule::State> FillTileSizes(const Sketch& sketch, const Parameters& parameters,
                                        Rng& rng, const std::stop_token& stop = {});

}  // namespace kiln::search
