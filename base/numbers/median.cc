#include "base/numbers/median.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kiln {
namespace {

// Ratio of the standard deviation to the MAD in a normal distribution.
constexpr double kDeviationOfMad = 1.4826;
// Ratio of the errors of the median and the mean in a normal distribution.
constexpr double kMedianOverMeanError = 1.2533;

double Median(std::vector<double> values) {
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + middle, values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  return (upper + *std::max_element(values.begin(), values.begin() + middle)) / 2;
}

}  // namespace

double StudentT95(double freedom) { return 1.96 + 2.4 / freedom + 4.0 / (freedom * freedom); }

double ScaleOf(std::span<const double> values, double centre) {
  if (values.empty()) return 0;
  std::vector<double> off;
  for (const double value : values) off.push_back(std::abs(value - centre));
  return kDeviationOfMad * Median(std::move(off));
}

MedianCost MedianOf(std::span<const double> costs_s) {
  if (costs_s.empty()) return {};
  MedianCost result;
  result.cost_s = Median({costs_s.begin(), costs_s.end()});
  if (costs_s.size() < 3) return result;
  const double n = static_cast<double>(costs_s.size());
  const double error_s = kMedianOverMeanError * ScaleOf(costs_s, result.cost_s) / std::sqrt(n);
  result.confidence_s = StudentT95(n - 1) * error_s;
  return result;
}

}  // namespace kiln
