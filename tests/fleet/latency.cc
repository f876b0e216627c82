#include "tests/fleet/latency.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numbers>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace kiln::fleet {
namespace {

// The 90th percentile of the standard normal distribution.
constexpr double kNormalP90 = 1.2815515655446004;
constexpr double kLongest_s = 3600;

bool IsTime(std::string_view text, double* seconds) {
  return absl::SimpleAtod(absl::string_view(text.data(), text.size()), seconds) &&
         std::isfinite(*seconds) && *seconds >= 0 && *seconds <= kLongest_s;
}

double Normal(Rng& rng) {
  const double radius = std::sqrt(-2 * std::log(1 - UniformReal(rng)));
  return radius * std::cos(2 * std::numbers::pi * UniformReal(rng));
}

StatusOr<std::vector<double>> ReadSamples(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return InvalidArgument("'{}' is no time: expected 0, P50:P90 in seconds, or a file", path);
  }
  std::vector<double> samples_s;
  std::string line;
  while (std::getline(file, line)) {
    double seconds = 0;
    if (!IsTime(line, &seconds)) {
      return InvalidArgument("line {} of {} is '{}', expected seconds from 0 to {}",
                             samples_s.size() + 1, path, line, kLongest_s);
    }
    samples_s.push_back(seconds);
  }
  if (samples_s.empty()) return InvalidArgument("{} has no line with a time", path);
  return samples_s;
}

}  // namespace

StatusOr<Latency> Latency::Parse(std::string_view text) {
  Latency latency;
  if (text == "0") return latency;
  const size_t colon = text.find(':');
  double p50_s = 0, p90_s = 0;
  if (colon != std::string_view::npos && IsTime(text.substr(0, colon), &p50_s) &&
      IsTime(text.substr(colon + 1), &p90_s)) {
    if (p50_s <= 0 || p90_s < p50_s) {
      return InvalidArgument("the times {} are no P50:P90: expected 0 < P50 <= P90", text);
    }
    latency.median_s_ = p50_s;
    latency.sigma_ = std::log(p90_s / p50_s) / kNormalP90;
    return latency;
  }
  KILN_ASSIGN_OR_RETURN(latency.samples_s_, ReadSamples(std::string(text)));
  return latency;
}

std::chrono::nanoseconds Latency::Draw(Rng& rng) const {
  double seconds = 0;
  if (!samples_s_.empty()) {
    seconds = PickFrom(rng, samples_s_);
  } else if (median_s_ > 0) {
    seconds = std::min(kLongest_s, median_s_ * std::exp(sigma_ * Normal(rng)));
  }
  return std::chrono::nanoseconds(static_cast<int64_t>(1e9 * seconds));
}

}  // namespace kiln::fleet
