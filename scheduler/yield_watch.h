// Stops what runs under a lease that others have wanted for a while: what runs sees that they wait
// only between its calls, and a call may take seconds.
//
// A thread of its own, that looks at the lease from time to time.
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
  // The lease outlives this.
  explicit YieldWatch(const LeasedWorker& lease)
      : thread_([this, &lease](const std::stop_token& end) { Watch(lease, end); }) {}

  // Fires once the lease has been wanted for a quarter of a second.
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
  std::jthread thread_;  // last: uses the rest
};

}  // namespace kiln::scheduler
