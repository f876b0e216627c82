#include "scheduler/dispatch/noise_meter.h"

#include <fmt/format.h>

#include "device/noise_mark.h"

namespace kiln::scheduler {
namespace {

// A few noisy trials may be chance. If there are many trials, a share of them counts.
constexpr int kMin = 3;
constexpr double kShare = 0.2;

}  // namespace

void NoiseMeter::Add(const store::Record& record) {
  if (record.error != store::kNoError || record.stopped_early) return;
  std::lock_guard lock(mutex_);
  ++trials_;
  if (!device::ParseNoiseMark(record.message).has_value()) return;
  ++noisy_;
  if (!notice_.empty() || noisy_ < kMin || noisy_ < kShare * trials_) return;
  notice_ = fmt::format(
      "the measurements are noisy: of {} trials {} were timed on a {}; results are better on a "
      "quiet "
      "machine (kiln doctor says how quiet it is)",
      trials_, noisy_, record.message);
}

std::string NoiseMeter::notice() const {
  std::lock_guard lock(mutex_);
  return notice_;
}

}  // namespace kiln::scheduler
