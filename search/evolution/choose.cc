#include "search/evolution/choose.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace kiln::search {

namespace {

class Chooser {
 public:
  Chooser(const std::vector<Individual>& ranked, int n, const Parameters& parameters,
          DiversityQuotas& quotas)
      : ranked_(ranked),
        n_(n),
        same_tiles_(parameters.max_same_tiles),
        same_shapes_(parameters.max_same_tile_shapes),
        same_outer_(std::max(2, static_cast<int>(std::ceil(n * parameters.max_same_outer_tiles)))),
        quotas_(quotas),
        taken_(ranked.size(), false) {}

  void TakeLeast() {
    const int most = std::min(n_, quotas_.most_for_least);
    for (size_t i = 0; i < ranked_.size() && count_ < most; ++i) {
      if (!ranked_[i].niche()) continue;
      const auto niche = static_cast<size_t>(*ranked_[i].niche());
      if (niche >= quotas_.least.size() || quotas_.least[niche] <= 0) continue;
      if (TakeWithinQuota(i)) --quotas_.least[niche];
    }
  }
  void TakeBest() {
    for (size_t i = 0; i < ranked_.size() && !full(); ++i) {
      if (!taken_[i] && !TakeWithinQuota(i)) beyond_quota_.push_back(i);
    }
  }
  // Takes candidates beyond the quotas: similar ones are better than none. Returns how many stay
  // out.
  int64_t TakeBeyondQuota() {
    const size_t left_over = std::min(beyond_quota_.size(), static_cast<size_t>(n_ - count_));
    for (size_t i = 0; i < left_over; ++i) Take(beyond_quota_[i]);
    return static_cast<int64_t>(beyond_quota_.size() - left_over);
  }

  bool full() const { return count_ == n_; }
  std::vector<int> chosen() const {
    std::vector<int> chosen;
    for (size_t i = 0; i < taken_.size(); ++i) {
      if (taken_[i]) chosen.push_back(static_cast<int>(i));
    }
    return chosen;
  }

 private:
  void Take(size_t i) {
    taken_[i] = true;
    ++count_;
  }
  bool TakeWithinQuota(size_t i) {
    const auto niche = static_cast<size_t>(ranked_[i].niche().value_or(0));
    const bool limited = ranked_[i].niche() && niche < quotas_.most.size();
    if (limited && quotas_.most[niche] <= 0) return false;
    int& tiles = tiles_[TilesHash(ranked_[i])];
    int& shapes = tile_shapes_[TileShapesHash(ranked_[i])];
    int& outer = outer_tiles_[OuterTilesHash(ranked_[i])];
    int* rows = ranked_[i].rows == nullptr ? nullptr : &quotas_.same_rows[RowsHash(ranked_[i])];
    if (tiles >= same_tiles_ || shapes >= same_shapes_ || outer >= same_outer_ ||
        (rows != nullptr && *rows >= same_tiles_))
      return false;
    ++tiles;
    ++shapes;
    ++outer;
    if (rows != nullptr) ++*rows;
    if (limited) --quotas_.most[niche];
    Take(i);
    return true;
  }

  const std::vector<Individual>& ranked_;
  const int n_, same_tiles_, same_shapes_, same_outer_;
  DiversityQuotas& quotas_;
  std::unordered_map<uint64_t, int> tiles_, tile_shapes_, outer_tiles_;
  std::vector<bool> taken_;
  std::vector<size_t> beyond_quota_;
  int count_ = 0;
};

}  // namespace

std::vector<int> ChooseDiverse(const std::vector<Individual>& ranked, int n,
                               const Parameters& parameters, DiversityQuotas quotas,
                               RoundReport& report) {
  Chooser chooser(ranked, n, parameters, quotas);
  chooser.TakeLeast();
  chooser.TakeBest();
  const int64_t similar = chooser.TakeBeyondQuota();
  std::vector<int> chosen = chooser.chosen();
  report.count(Drop::kSimilar) += similar;
  report.count(Drop::kLowScore) += static_cast<int64_t>(ranked.size() - chosen.size()) - similar;
  return chosen;
}

}  // namespace kiln::search
