// Draws random schedules of a task with many threads.
#pragma once

#include <cstdint>
#include <vector>

#include "search/evolution/evaluate.h"
#include "search/evolution/individual.h"
#include "search/space/parameters.h"
#include "search/space/round_report.h"
#include "search/space/sketch.h"

namespace kiln::search {

// Draws up to `count` distinct schedules of randomly picked sketches that are not in `known`, and
// adds their hashes to it. Returns fewer if `max_rejected` draws in a row were refused or known.
// The schedules are not lowered yet. The same seed gives the same schedules, however many threads
// work.
std::vector<Individual> DrawPopulation(const Workers& workers, const Parameters& parameters,
                                       const std::vector<Sketch>& sketches, int count,
                                       int max_rejected, uint64_t seed, Hashes& known,
                                       RoundReport& report);

}  // namespace kiln::search
