#include "costmodel/rank_quality.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/status.h"
#include "costmodel/rank_correlation.h"

namespace kiln::costmodel {
namespace {

double PairwiseAccuracy(std::span<const double> scores, std::span<const double> throughputs) {
  double right = 0, pairs = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (throughputs[i] == throughputs[j]) continue;
      ++pairs;
      if (scores[i] == scores[j]) {
        right += 0.5;
      } else if ((scores[i] > scores[j]) == (throughputs[i] > throughputs[j])) {
        ++right;
      }
    }
  }
  return pairs > 0 ? right / pairs : 1;
}

// Returns the places of the k highest values, in any order. Among equal values the first ones
// count.
std::vector<size_t> Highest(std::span<const double> values, size_t k) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return values[a] > values[b]; });
  order.resize(k);
  return order;
}

}  // namespace

RankQuality QualityOf(std::span<const double> scores, std::span<const double> throughputs, int k) {
  KILN_CHECK(scores.size() == throughputs.size() && scores.size() >= 2 && k >= 1,
             "{} scores, {} throughputs, k = {}", scores.size(), throughputs.size(), k);
  const size_t top = std::min(static_cast<size_t>(k), scores.size());
  std::vector<size_t> chosen = Highest(scores, top), fastest = Highest(throughputs, top);
  double found = 0;
  for (const size_t i : chosen) found = std::max(found, throughputs[i]);
  std::ranges::sort(chosen);
  std::ranges::sort(fastest);
  std::vector<size_t> both;
  std::ranges::set_intersection(chosen, fastest, std::back_inserter(both));
  return {.spearman = Spearman(scores, throughputs),
          .pairwise = PairwiseAccuracy(scores, throughputs),
          .recall = static_cast<double>(both.size()) / static_cast<double>(top),
          .peak = found / std::ranges::max(throughputs)};
}

RankQuality MeanOf(std::span<const RankQuality> all) {
  RankQuality sum;
  for (const RankQuality& quality : all) {
    sum.spearman += quality.spearman;
    sum.pairwise += quality.pairwise;
    sum.recall += quality.recall;
    sum.peak += quality.peak;
  }
  const auto count = static_cast<double>(std::max<size_t>(1, all.size()));
  return {sum.spearman / count, sum.pairwise / count, sum.recall / count, sum.peak / count};
}

}  // namespace kiln::costmodel
