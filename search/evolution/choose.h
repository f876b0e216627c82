// The candidates of a round: the best ones, but no crowd of near-identical ones.
#pragma once

#include <unordered_map>
#include <vector>

#include "search/evolution/individual.h"
#include "search/space/parameters.h"
#include "search/space/round_report.h"

namespace kiln::search {

// What is known of the candidates besides their ranks.
struct DiversityQuotas {
  // By niche: so many of the round are of it, if it has them. One that was lucky early would take all
  // trials otherwise.
  std::vector<int> least = {};
  // By niche: no more than so many, as long as there are others.
  std::vector<int> most = {};
  // By RowsHash: how many were measured that no model can tell from these.
  std::unordered_map<uint64_t, int> same_rows = {};
};

// Takes up to n of `ranked` (the best first), at most max_same_tiles with equal tiles or with equal
// rows, max_same_tile_shapes with nearly equal ones, and a share of max_same_outer_tiles with equal
// outermost tiles; when that gives fewer than n, then the best of those left out. Returns indices
// into `ranked` in its order. Drops are counted.
std::vector<int> ChooseDiverse(const std::vector<Individual>& ranked, int n,
                               const Parameters& parameters, DiversityQuotas quotas,
                               RoundReport& report);

}  // namespace kiln::search
