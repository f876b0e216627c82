// Tries at the start to reach the tracker, and logs if that fails: jobs would otherwise wait in
// silence. Has one thread, which ends when the tracker was reached or at destruction.
#pragma once

#include <string>
#include <thread>

#include "base/server/secret.h"

namespace kiln::scheduler {

class TrackerCheck {
 public:
  TrackerCheck(std::string tracker, const Secret& secret);

 private:
  std::jthread thread_;
};

}  // namespace kiln::scheduler
