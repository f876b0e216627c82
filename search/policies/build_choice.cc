#include "search/policies/build_choice.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/status.h"

namespace kiln::search {
namespace {

double Median(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
  std::ranges::nth_element(sorted, middle);
  return *middle;
}

}  // namespace

double ExpectedGain(double slowness) {
  const double z = std::log(slowness) / kPredictionError;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  const double tail = std::erfc(z / std::numbers::sqrt2) / 2;
  return kPredictionError * std::max(0.0, density - z * tail);
}

std::vector<size_t> OrderByGainPerSecond(std::span<const double> scores,
                                         std::span<const double> builds_s, double other_s,
                                         size_t best) {
  KILN_CHECK(scores.size() == builds_s.size(), "{} scores of {} builds", scores.size(),
             builds_s.size());
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (scores.size() <= best) return order;
  const bool are_seconds = scores.front() < 0;
  std::vector<double> gains(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    const double slowness = are_seconds ? scores[i] / scores.front() : scores.front() / scores[i];
    // A throughput of nothing, and a time without end, gain nothing.
    if (!(slowness >= 1) || std::isinf(slowness)) continue;
    gains[i] = ExpectedGain(slowness) / (builds_s[i] + other_s);
  }
  std::stable_sort(order.begin() + static_cast<std::ptrdiff_t>(best), order.end(),
                   [&](size_t a, size_t b) { return gains[a] > gains[b]; });
  return order;
}

std::vector<bool> CheapHalf(std::span<const double> builds_s) {
  std::vector<bool> cheap(builds_s.size());
  if (builds_s.empty()) return cheap;
  const double most_s = Median(builds_s);
  for (size_t i = 0; i < builds_s.size(); ++i) cheap[i] = builds_s[i] <= most_s;
  return cheap;
}

void BuildLimit::Note(std::optional<double> awaited_build_s) {
  ++results_;
  share_ += std::max(kNewest, 1.0 / results_) * ((awaited_build_s ? 1 : 0) - share_);
  if (!awaited_build_s) return;
  ++builds_;
  mean_s_ += std::max(kNewest, 1.0 / builds_) * (*awaited_build_s - mean_s_);
}

}  // namespace kiln::search
