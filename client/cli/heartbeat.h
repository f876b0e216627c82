// Says now and then that something long still goes on.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/time/time.h"

namespace kiln::client {

// From its making to its end calls `say` every `period`, with the time since it was made, in a thread
// of its own. Its end waits for a call that is in progress, and no longer.
class Heartbeat {
 public:
  Heartbeat(absl::Duration period, std::function<void(absl::Duration)> say);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;  // last: uses the rest
};

}  // namespace kiln::client
