#include "client/cli/models/heartbeat.h"

#include <utility>

namespace kiln::client {

Heartbeat::Heartbeat(absl::Duration period, std::function<void(absl::Duration)> say, Clock& clock)
    : thread_([this, period, say = std::move(say), &clock] {
        std::unique_lock lock(mutex_);
        for (int beats = 1;; ++beats) {
          const auto over = [this] { return over_; };
          if (clock.WaitFor(lock, ended_, period, over)) return;
          lock.unlock();
          say(beats * period);
          lock.lock();
        }
      }) {}

Heartbeat::~Heartbeat() {
  {
    std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

}  // namespace kiln::client
