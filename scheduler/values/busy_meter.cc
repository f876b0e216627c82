#include "scheduler/values/busy_meter.h"

#include <algorithm>

namespace kiln::scheduler {

void BusyMeter::Add(int runner, double now_s, double run_s, Use use) {
  trials_.push_back({now_s, std::max(0.0, run_s), use});
  since_s_.try_emplace(runner, now_s - trials_.back().run_s);
  while (trials_.front().end_s < now_s - kWindow_s) trials_.pop_front();
}

BusyMeter::Reading BusyMeter::Read(double now_s) const {
  Reading reading;
  reading.devices = static_cast<int>(since_s_.size());
  const double begin_s = now_s - kWindow_s;
  double device_s = 0, longest_s = 0;
  for (const auto& [runner, since_s] : since_s_) {
    device_s += now_s - std::max(begin_s, since_s);
    longest_s = std::max(longest_s, now_s - std::max(begin_s, since_s));
  }
  if (device_s <= 0) return reading;
  double busy_s = 0, elites_s = 0;
  int trials = 0;
  for (const Trial& trial : trials_) {
    if (trial.end_s < begin_s) continue;
    const double run_s = std::min(trial.run_s, trial.end_s - begin_s);
    busy_s += run_s;
    if (trial.use == Use::kTrial) ++trials;
    if (trial.use == Use::kElite) elites_s += run_s;
  }
  reading.busy_share = std::min(1.0, busy_s / device_s);
  reading.elites_share = std::min(1.0, elites_s / device_s);
  reading.trials_per_s = trials / longest_s;
  return reading;
}

}  // namespace kiln::scheduler
