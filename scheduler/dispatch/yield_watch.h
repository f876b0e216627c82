// Stops the work under a lease that others have wanted for a while. The work itself sees only
// between its calls that others wait, and a call may take seconds.
//
// Has a thread of its own, which looks at the lease from time to time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include "rpc/lease_source.h"

namespace kiln::scheduler {

class YieldWatch {
 public:
  // The lease outlives this object.
  explicit YieldWatch(const LeasedWorker& lease)
      : thread_([this, &lease](const std::stop_token& end) { Watch(lease, end); }) {}

  // Requested once the lease has been wanted for a quarter of a second.
  std::stop_token token() const { return yield_.get_token(); }

 private:
  static constexpr std::chrono::milliseconds kLook{50}, kPatience{250};

  void Watch(const LeasedWorker& lease, const std::stop_token& end) {
    std::mutex mutex;
    std::condition_variable_any ended;
    std::unique_lock lock(mutex);
    std::chrono::milliseconds wanted{0};
    while (!ended.wait_for(lock, end, kLook, [&end] { return end.stop_requested(); })) {
      wanted = lease.wanted() ? wanted + kLook : std::chrono::milliseconds(0);
      if (wanted >= kPatience) yield_.request_stop();
    }
  }

  std::stop_source yield_;
  std::jthread thread_;  // last: it uses the other members
};

}  // namespace kiln::scheduler
