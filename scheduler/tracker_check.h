// Tries at the start to reach the tracker, and logs if that fails: jobs would otherwise wait in
// silence. Has one thread, which ends when the tracker was reached or at destruction.
#pragma once

#include <string>
#include <thread>

#include "rpc/farm_access.h"

namespace kiln::scheduler {

class TrackerCheck {
 public:
  TrackerCheck(std::string tracker, const FarmAccess& access);

 private:
  std::jthread thread_;
};

}  // namespace kiln::scheduler
