#include "runner/measure_options.h"

#include <algorithm>

#include "device/measured_as.h"
#include "proto/job_defaults.h"

namespace kiln::runner {
namespace {

// From this time on, one run may be enough.
constexpr double kSlowProgramS = 1;
// Multiple of the best cost. Programs that are slower are not worth a long reading: a short one is
// right to a few percent, which is enough to learn from.
constexpr double kClearlySlower = 1.25;
// The same while another trial waits for the device. A program that is slower by this is not the
// best one, whatever a device's speed drifts by while it is tuned for.
constexpr double kSlower = 1.1;
// Time that another run may take, in units of the first run.
constexpr double kSlowerRun = 1.2;
// Limits the readings, which are kept in the reply.
constexpr uint32_t kMaxRepeat = 100000;

}  // namespace

v1::MeasureOptions WithDefaults(v1::MeasureOptions options) {
  if (options.number() == 0) options.set_number(kDefaultNumber);
  options.set_repeat(std::clamp(options.repeat(), kDefaultRepeat, kMaxRepeat));
  if (options.timeout_ms() == 0) options.set_timeout_ms(kDefaultRunTimeoutMs);
  return options;
}

std::string MeasuredAs(std::string_view device_kind, const v1::MeasureOptions& options) {
  using Way = device::MeasuredAs;
  Way way;
  if (device_kind == "cuda") {
    way.launches = options.single_launches() ? Way::Launches::kStream : Way::Launches::kGraph;
  }
  way.caches = options.flush_cache() ? Way::Caches::kCold : Way::Caches::kWarm;
  return device::PrintMeasuredAs(way);
}

std::optional<double> EarlyStopSeconds(const v1::MeasureOptions& options) {
  const double limit_s = options.early_stop_ratio() * options.best_cost_s();
  return limit_s > 0 ? std::optional(limit_s) : std::nullopt;
}

TimingOptions TimingFrom(const v1::MeasureOptions& options) {
  TimingOptions timing;
  timing.number = options.number();
  timing.repeat = static_cast<int>(options.repeat());
  timing.min_repeat_s = 1e-3 * options.min_repeat_ms();
  timing.cooldown_s = 1e-3 * options.cooldown_ms();
  timing.flush_cache = options.flush_cache();
  timing.early_stop_s = EarlyStopSeconds(options);
  if (timing.early_stop_s) {
    timing.clearly_slower_s = kClearlySlower * options.best_cost_s();
    timing.slower_s = kSlower * options.best_cost_s();
  }
  timing.idle_s = 1e-3 * options.idle_ms();
  return timing;
}

bool IsEnough(const v1::MeasureOptions& options, double first_s, double used_s) {
  if (first_s < kSlowProgramS) return false;
  const std::optional<double> early_stop_s = EarlyStopSeconds(options);
  const bool stops_early = early_stop_s.has_value() && first_s > *early_stop_s;
  return stops_early || used_s + kSlowerRun * first_s > 1e-3 * options.timeout_ms();
}

}  // namespace kiln::runner
