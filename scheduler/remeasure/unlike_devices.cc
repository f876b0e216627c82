#include "scheduler/remeasure/unlike_devices.h"

#include <fmt/format.h>

#include <utility>

#include "base/text/units.h"
#include "device/unlike_canary.h"

namespace kiln::scheduler {

void UnlikeDevices::Note(KnownRunnerPtr runner, double canary_s) {
  std::lock_guard lock(mutex_);
  Device newest{std::move(runner), canary_s};
  const auto known = devices_.find(newest);
  if (known != devices_.end()) {
    if (known->runner == newest.runner && known->canary_s == canary_s) return;
    devices_.erase(known);
  }
  devices_.insert(std::move(newest));
  double usual_s = 0;
  for (const Devices::const_iterator at : Unlike(&usual_s)) {
    const KnownRunner& device = *at->runner;
    if (!said_.insert(device.identity).second) continue;
    const std::string name =
        device.identity == device.id ? "" : fmt::format(" ({})", device.identity);
    notices_.push_back(fmt::format(
        "the device at {}{} measures unlike the others of its model: its canary takes {}, and {} "
        "is usual; final races leave it out",
        device.address, name, FormatSeconds(at->canary_s), FormatSeconds(usual_s)));
  }
}

std::vector<UnlikeDevices::Devices::const_iterator> UnlikeDevices::Unlike(double* usual_s) const {
  std::vector<double> canaries_s;
  bool is_gpu = false;
  for (const Device& device : devices_) {
    canaries_s.push_back(device.canary_s);
    is_gpu = is_gpu || device.runner->is_gpu;
  }
  *usual_s = device::UsualCanary(canaries_s);
  const std::vector<bool> unlike = device::UnlikeCanaries(
      canaries_s, is_gpu ? device::kUnlikeGpuShare : device::kUnlikeCpuShare);
  std::vector<Devices::const_iterator> found;
  size_t i = 0;
  for (auto at = devices_.begin(); at != devices_.end(); ++at) {
    if (unlike[i++]) found.push_back(at);
  }
  return found;
}

std::vector<std::string> UnlikeDevices::Runners() const {
  std::lock_guard lock(mutex_);
  double usual_s = 0;
  std::vector<std::string> runners;
  for (const Devices::const_iterator at : Unlike(&usual_s)) runners.push_back(at->runner->id);
  return runners;
}

std::vector<std::string> UnlikeDevices::notices() const {
  std::lock_guard lock(mutex_);
  return notices_;
}

}  // namespace kiln::scheduler
