// Reports now and then that something long still runs.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/time/time.h"
#include "base/clock.h"

namespace kiln::client {

// While it lives it calls `say` every `period` of the clock, with the time since its construction,
// in a thread of its own. The destructor waits only for a call that is in progress.
class Heartbeat {
 public:
  Heartbeat(absl::Duration period, std::function<void(absl::Duration)> say,
            Clock& clock = Clock::Real());
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  // The thread uses the members above, so it is the last one.
  std::thread thread_;
};

}  // namespace kiln::client
