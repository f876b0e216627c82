#include "scheduler/remeasure/unlike_devices.h"

#include <fmt/format.h>

#include "base/text/units.h"
#include "device/unlike_canary.h"
#include "scheduler/values/device_keys.h"

namespace kiln::scheduler {

void UnlikeDevices::Note(const v1::WorkerState& runner) {
  std::lock_guard lock(mutex_);
  devices_[DeviceIdentity(runner)] = {runner.id(), runner.address(), runner.canary_s(),
                                      runner.target().starts_with("cuda")};
  double usual_s = 0;
  for (const Devices::const_iterator at : Unlike(&usual_s)) {
    const auto& [identity, device] = *at;
    if (!said_.insert(identity).second) continue;
    const std::string name = identity == device.runner ? "" : fmt::format(" ({})", identity);
    notices_.push_back(fmt::format(
        "the device at {}{} measures unlike the others of its model: its canary takes {}, and {} "
        "is usual; final races leave it out",
        device.address, name, FormatSeconds(device.canary_s), FormatSeconds(usual_s)));
  }
}

std::vector<UnlikeDevices::Devices::const_iterator> UnlikeDevices::Unlike(double* usual_s) const {
  std::vector<double> canaries_s;
  bool is_gpu = false;
  for (const auto& [identity, device] : devices_) {
    canaries_s.push_back(device.canary_s);
    is_gpu = is_gpu || device.is_gpu;
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
  for (const Devices::const_iterator at : Unlike(&usual_s)) runners.push_back(at->second.runner);
  return runners;
}

std::vector<std::string> UnlikeDevices::notices() const {
  std::lock_guard lock(mutex_);
  return notices_;
}

}  // namespace kiln::scheduler
