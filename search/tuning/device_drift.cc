#include "search/tuning/device_drift.h"

#include <algorithm>
#include <cmath>

#include "base/numbers/median.h"

namespace kiln::search {
namespace {

// The value of a turn comes from readings three times as long as a trial's, so it has a third of
// the variance.
constexpr double kTrialsVariance = 3;
// All changes of one race share the time of the final race, and some belong to trials that were
// close to each other, so half of them count as independent. Two or three changes do not measure
// their spread, so at least kMinDegreesOfFreedom degrees of freedom are assumed.
constexpr double kIndependent = 0.5, kMinDegreesOfFreedom = 3;

}  // namespace

void DeviceDrift::Add(double first_s, std::span<const double> values_s) {
  if (values_s.empty()) return;
  const double median_s = MedianOf(values_s).cost_s;
  std::lock_guard lock(mutex_);
  changes_.push_back(std::log(median_s / first_s));
  if (values_s.size() < 2) return;
  for (const double value_s : values_s) noise_.push_back(std::log(value_s / median_s));
}

double DeviceDrift::Share() const {
  std::lock_guard lock(mutex_);
  if (changes_.empty()) return 0;
  const double change = ScaleOf(changes_, 0), noise = ScaleOf(noise_, 0);
  const double variance = std::max(0.0, change * change - kTrialsVariance * noise * noise);
  const double degrees =
      std::max(kMinDegreesOfFreedom, kIndependent * static_cast<double>(changes_.size()));
  return StudentT95(degrees) * std::sqrt(variance);
}

double WithDrift(double cost_s, double confidence_s, double drift_share) {
  return std::hypot(confidence_s, drift_share * cost_s);
}

}  // namespace kiln::search
