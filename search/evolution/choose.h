// Chooses the candidates of a round: the best ones, but only a few that are almost equal.
#pragma once

#include <limits>
#include <unordered_map>
#include <vector>

#include "search/evolution/individual.h"
#include "search/space/parameters.h"
#include "search/space/round_report.h"

namespace kiln::search {

// Limits on the candidates of a round, besides their ranks.
struct DiversityQuotas {
  // Least number of candidates of each niche, as long as the niche has them. Otherwise a niche that
  // was lucky early would take all trials.
  std::vector<int> least = {};
  // Largest number of candidates that these least numbers take together, the best first. A
  // computation of several products has more niches than a round has candidates.
  int most_for_least = std::numeric_limits<int>::max();
  // Largest number of candidates of each niche, as long as there are others.
  std::vector<int> most = {};
  // Number of measured programs that have the same rows, by RowsHash.
  std::unordered_map<uint64_t, int> same_rows = {};
};

// Takes up to n of `ranked`, which has the best first. At most max_same_tiles have equal tiles or
// equal rows, at most max_same_tile_shapes have nearly equal tiles, and at most a share of
// max_same_outer_tiles have equal outermost tiles. If that gives fewer than n, the best of the
// others follow. Returns indices into `ranked`, in its order. Counts the others in the report.
std::vector<int> ChooseDiverse(const std::vector<Individual>& ranked, int n,
                               const Parameters& parameters, DiversityQuotas quotas,
                               RoundReport& report);

}  // namespace kiln::search
