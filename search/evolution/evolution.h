// Evolution of schedules under a model's scores (Ansor, OSDI 2020, section 5.1). The parents are
// the best of a generation and the best measured schedules. Children come from mutation and
// crossover. The best of all generations are kept. Each sketch is a niche, or several niches if
// matrix units may compute its products (individual.h). The best schedules of each niche survive
// and have children, however good those of other niches are.
//
// A child's tiles are checked before it is replayed, and it is lowered only if it has not been seen
// in this round. Each child has a seed of its own, and generations are put together in the order of
// the children, so the result does not depend on the number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "costmodel/cost_model.h"
#include "search/evolution/evaluate.h"
#include "search/evolution/individual.h"
#include "search/space/parameters.h"
#include "search/space/round_report.h"
#include "search/space/sketch.h"

namespace kiln::search {

struct EvolutionInput {
  const Workers& workers;
  const Parameters& parameters;
  const std::vector<Sketch>& sketches;
  const costmodel::CostModel& model;
  int population = 0;  // size of a generation
  int keep = 0;        // number of individuals to return
  uint64_t seed = 0;
};

// `first` is the first generation, with rows and scores. `elites` are measured schedules, the best
// first, which are parents beside the generation. `known` must not be returned; it includes all
// elites. Returns distinct individuals, the best score first.
std::vector<Individual> Evolve(const EvolutionInput& input, std::vector<Individual> first,
                               const std::vector<Individual>& elites, const Hashes& known,
                               RoundReport& report);

// Keeps the first `most` of the sorted individuals, and in addition the first `least` of each
// niche.
void CutToBest(size_t most, int least, std::vector<Individual>& sorted);

// Sorts by score, and individuals of equal score by hash.
void SortByScore(std::vector<Individual>& individuals);

}  // namespace kiln::search
