#include "scheduler/values/known_runners.h"

#include <utility>

#include "device/device_model.h"
#include "rpc/device_message.h"
#include "scheduler/values/device_keys.h"

namespace kiln::scheduler {

KnownRunnerPtr KnownRunners::Of(const v1::WorkerState& runner) {
  std::lock_guard lock(mutex_);
  const auto [known, is_new] = runners_.try_emplace(runner.id());
  if (!is_new) return known->second;
  KnownRunner facts{.number = static_cast<int>(runners_.size()) - 1,
                    .id = runner.id(),
                    .address = runner.address(),
                    .identity = DeviceIdentity(runner),
                    .device_model = {},
                    .is_gpu = runner.target().starts_with("cuda")};
  const auto model = DeviceModelOf(runner);
  if (model.ok()) facts.device_model = device::PrintDeviceModel(*model);
  known->second = std::make_shared<const KnownRunner>(std::move(facts));
  return known->second;
}

}  // namespace kiln::scheduler
