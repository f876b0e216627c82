// Looks at the start whether the tracker can be reached, and says so in the log when it can't:
// jobs would wait in silence otherwise. One thread, until the tracker was reached or destruction.
#pragma once

#include <string>
#include <thread>

#include "base/secret.h"

namespace kiln::scheduler {

class TrackerCheck {
 public:
  TrackerCheck(std::string tracker, const Secret& secret);

 private:
  std::jthread thread_;
};

}  // namespace kiln::scheduler
