// The device model of each runner as records keep it. It is printed once for each runner, because
// it does not change while the runner's process lives.
//
// Thread-safe. Memory: one text for each runner that was asked for.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "proto/tracker.pb.h"

namespace kiln::scheduler {

class DeviceTexts {
 public:
  // Returns "" if the runner announces no model, or one that is not valid.
  std::string TextOf(const v1::WorkerState& runner);

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> texts_;  // key: id of the runner
};

}  // namespace kiln::scheduler
