// Evolution of schedules under a model's scores (Ansor, OSDI 2020, section 5.1). The parents are
// the best of a generation and the best measured schedules; children come from mutation and
// crossover; the best of all generations are kept. Each sketch is a niche, or several where matrix units
// may compute its products (individual.h): its own best schedules survive and have children, however
// good those of other niches are.
//
// A child is checked by its tiles before it is replayed, and is lowered only if it has not been
// seen in this round. Each child has a seed of its own and generations are put together in the
// order of children: the result does not depend on the number of threads.
#pragma once

#include <cstdint>
#include <unordered_set>
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
  int population = 0;  // of a generation
  int keep = 0;        // how many to return
  uint64_t seed = 0;
};

// `first`: the first generation, with rows and scores. `elites`: measured ones, the best first;
// parents beside the generation. `known`: what must not be returned, among it all elites.
// Returns distinct ones, the best score first.
std::vector<Individual> Evolve(const EvolutionInput& input, std::vector<Individual> first,
                               const std::vector<Individual>& elites,
                               const std::unordered_set<uint64_t>& known, RoundReport& report);

// Cuts what is sorted to its first `most`, and besides those to the first `least` of each sketch.
void CutToBest(size_t most, int least, std::vector<Individual>& sorted);

// The order of generations: by score, equal ones by hash.
void SortByScore(std::vector<Individual>& individuals);

}  // namespace kiln::search
