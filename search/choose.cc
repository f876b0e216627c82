#include "search/choose.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace kiln::search {

std::vector<int> ChooseDiverse(const std::vector<Individual>& ranked, int n,
                               const Parameters& parameters, RoundReport& report) {
  const int same_outer =
      std::max(2, static_cast<int>(std::ceil(n * parameters.max_same_outer_tiles)));
  std::unordered_map<uint64_t, int> tiles, outer_tiles;
  std::vector<int> chosen, crowded;
  for (int i = 0; i < static_cast<int>(ranked.size()); ++i) {
    if (static_cast<int>(chosen.size()) == n) {
      report.count(Drop::kLowScore) += static_cast<int64_t>(ranked.size()) - i;
      break;
    }
    int& same = tiles[TilesHash(ranked[i])];
    int& outer = outer_tiles[OuterTilesHash(ranked[i])];
    if (same >= parameters.max_same_tiles || outer >= same_outer) {
      crowded.push_back(i);
      continue;
    }
    ++same;
    ++outer;
    chosen.push_back(i);
  }
  const size_t left_over = std::min(crowded.size(), static_cast<size_t>(n) - chosen.size());
  chosen.insert(chosen.end(), crowded.begin(), crowded.begin() + left_over);
  report.count(Drop::kSimilar) += static_cast<int64_t>(crowded.size() - left_over);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace kiln::search
