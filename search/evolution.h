// Evolution of schedules under a model's scores (facts §3.9): the best of a generation and of what
// was measured have children by small changes and by crossover, and the best of all is kept. Each
// sketch is a niche: its best ones stay and have children, however good those of others are.
//
// A child is checked by its tiles before it is replayed, and is lowered only if it has not been
// seen in this round. Each child has a seed of its own and generations are put together in the
// order of children: the result does not depend on the number of threads.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "costmodel/cost_model.h"
#include "search/evaluate.h"
#include "search/individual.h"
#include "search/parameters.h"
#include "search/round_report.h"
#include "search/sketch.h"

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

// `first`: the first generation, with rows and scores. `leaders`: measured ones, the best first;
// parents beside the generation. `known`: what must not be returned, among it all leaders.
// Returns distinct ones, the best score first.
std::vector<Individual> Evolve(const EvolutionInput& input, std::vector<Individual> first,
                               const std::vector<Individual>& leaders,
                               const std::unordered_set<uint64_t>& known, RoundReport& report);

// Cuts what is sorted to its first `most`, and besides those to the first `least` of each sketch.
void CutToBest(size_t most, int least, std::vector<Individual>& sorted);

// The order of generations: by score, equal ones by hash.
void SortByScore(std::vector<Individual>& individuals);

}  // namespace kiln::search
