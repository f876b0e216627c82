#include "scheduler/dispatch/device_texts.h"

#include "device/device_model.h"
#include "rpc/device_message.h"

namespace kiln::scheduler {

std::string DeviceTexts::TextOf(const v1::WorkerState& runner) {
  std::lock_guard lock(mutex_);
  const auto [text, is_new] = texts_.try_emplace(runner.id());
  if (!is_new) return text->second;
  const auto model = DeviceModelOf(runner);
  if (model.ok()) text->second = device::PrintDeviceModel(*model);
  return text->second;
}

}  // namespace kiln::scheduler
