#include "scheduler/values/device_keys.h"

#include <algorithm>

namespace kiln::scheduler {

std::string ModelKey(const v1::WorkerState& runner) {
  const auto& keys = runner.keys();
  if (keys.empty()) return "";
  const bool is_named = std::find(keys.begin(), keys.end(), runner.device()) != keys.end();
  return is_named ? runner.device() : keys[keys.size() - 1];
}

std::string DeviceIdentity(const v1::WorkerState& runner) {
  const auto& keys = runner.keys();
  if (keys.empty() || keys[keys.size() - 1] == ModelKey(runner)) return runner.id();
  return keys[keys.size() - 1];
}

}  // namespace kiln::scheduler
