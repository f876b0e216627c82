#include "base/median.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kiln {
namespace {

constexpr double kDeviationOfMad = 1.4826;       // of a normal distribution
constexpr double kMedianOverMeanError = 1.2533;  // likewise

double Median(std::vector<double> values) {
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + middle, values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  return (upper + *std::max_element(values.begin(), values.begin() + middle)) / 2;
}

// The 97.5% point of Student's t, within 2% from 3 degrees of freedom on.
double StudentT(double freedom) { return 1.96 + 2.4 / freedom + 4.0 / (freedom * freedom); }

}  // namespace

MedianCost MedianOf(std::span<const double> costs_s) {
  if (costs_s.empty()) return {};
  MedianCost result;
  result.cost_s = Median({costs_s.begin(), costs_s.end()});
  if (costs_s.size() < 3) return result;
  std::vector<double> off;
  for (const double cost_s : costs_s) off.push_back(std::abs(cost_s - result.cost_s));
  const double n = static_cast<double>(costs_s.size());
  const double error_s = kMedianOverMeanError * kDeviationOfMad * Median(off) / std::sqrt(n);
  result.confidence_s = StudentT(n - 1) * error_s;
  return result;
}

}  // namespace kiln
