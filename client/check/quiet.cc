#include "client/check/quiet.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/process/machine_load.h"
#include "device/gpu_load.h"

namespace kiln::client {
namespace {

constexpr int kReadings = 40;
// Some 5 ms.
constexpr int kSteps = 3'000'000;
constexpr double kMuch = 0.1;

// Each step of the loop needs the one before, so only the clock of the core sets the time.
double TimeOnce(double& value) {
  const double start_s = Clock::Real().MonotonicSeconds();
  for (int i = 0; i < kSteps; ++i) value = value * 0.999999 + 1e-6;
  return Clock::Real().MonotonicSeconds() - start_s;
}

}  // namespace

double SpreadOf(std::span<const double> readings_s) {
  if (readings_s.empty()) return 0;
  std::vector<double> sorted(readings_s.begin(), readings_s.end());
  std::ranges::sort(sorted);
  const double ninth = sorted[(sorted.size() - 1) * 9 / 10];
  return sorted[0] > 0 ? ninth / sorted[0] - 1 : 0;
}

double MeasureSpread() {
  std::vector<double> readings_s;
  double value = 1;
  for (int i = 0; i < kReadings; ++i) readings_s.push_back(TimeOnce(value));
  // The condition is always true. It reads `value`, so that the compiler keeps the loop.
  return value > 0 ? SpreadOf(readings_s) : 0;
}

std::string QuietText() {
  const double spread = MeasureSpread();
  std::string text = fmt::format("readings of one loop differ by {:.0f}%", 100 * spread);
  for (const std::string& more : {LoadText(), device::GpuLoadText()}) {
    if (!more.empty()) text += "; " + more;
  }
  if (spread > kMuch)
    text += "; tuning here finds worse programs while other programs run: stop them, or tune later";
  return text;
}

}  // namespace kiln::client
