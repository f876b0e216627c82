#include "costmodel/rank_correlation.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace kiln::costmodel {
namespace {

std::vector<double> Ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t x, size_t y) { return values[x] < values[y]; });
  std::vector<double> rank(values.size());
  for (size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<double>(i);
  return rank;
}

}  // namespace

double Spearman(std::span<const double> a, std::span<const double> b) {
  if (a.size() < 2) return 0;
  const std::vector<double> x = Ranks(a), y = Ranks(b);
  double squares = 0;
  for (size_t i = 0; i < x.size(); ++i) squares += (x[i] - y[i]) * (x[i] - y[i]);
  const auto n = static_cast<double>(x.size());
  return 1 - 6 * squares / (n * (n * n - 1));
}

}  // namespace kiln::costmodel
