#include "tests/fleet/figures.h"

#include <algorithm>
#include <cmath>

namespace kiln::fleet {
namespace {

constexpr double kFirst_s = 1e-6;
const double kLogRatio = std::log(1.09);

}  // namespace

void Times::Add(std::chrono::nanoseconds time) {
  const double seconds = std::max(kFirst_s, 1e-9 * static_cast<double>(time.count()));
  const auto bucket = static_cast<size_t>(std::log(seconds / kFirst_s) / kLogRatio);
  ++counts_[std::min(bucket, kBuckets - 1)];
}

void Times::Clear() {
  for (auto& count : counts_) count = 0;
}

int64_t Times::count() const {
  int64_t sum = 0;
  for (const auto& count : counts_) sum += count;
  return sum;
}

double Times::Quantile(double q) const {
  const int64_t all = count();
  if (all == 0) return 0;
  const auto wanted = static_cast<int64_t>(std::ceil(q * static_cast<double>(all)));
  int64_t sum = 0;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    sum += counts_[bucket];
    if (sum >= wanted) {
      return kFirst_s * std::exp(kLogRatio * static_cast<double>(bucket + 1));
    }
  }
  return 0;
}

}  // namespace kiln::fleet
