// The candidates of a round: the best ones, but no crowd of near-identical ones.
#pragma once

#include <vector>

#include "base/rng.h"
#include "search/individual.h"
#include "search/parameters.h"
#include "search/round_report.h"

namespace kiln::search {

// Takes up to n of `ranked` (the best first), at most max_same_tiles with equal tiles and a share
// of max_same_outer_tiles with equal outermost tiles; when that gives fewer than n, then the best
// of those left out. Returns indices into `ranked` in its order. Drops are counted.
std::vector<int> ChooseDiverse(const std::vector<Individual>& ranked, int n,
                               const Parameters& parameters, RoundReport& report);

}  // namespace kiln::search
