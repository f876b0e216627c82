// A stop token that tells whether the caller of a request still waits.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace kiln::scheduler {

class CallerWatch {
 public:
  // Asks `gone` ten times a second, in a thread of its own.
  explicit CallerWatch(std::function<bool()> gone)
      : watch_([this, gone = std::move(gone)](const std::stop_token& end) {
          std::mutex mutex;
          std::condition_variable_any ended;
          std::unique_lock lock(mutex);
          while (!end.stop_requested() && !gone()) {
            ended.wait_for(lock, end, std::chrono::milliseconds(100), [] { return false; });
          }
          if (!end.stop_requested()) gone_.request_stop();
        }) {}
  CallerWatch(const CallerWatch&) = delete;
  CallerWatch& operator=(const CallerWatch&) = delete;

  // The token is requested once the caller has gone.
  std::stop_token token() const { return gone_.get_token(); }

 private:
  std::stop_source gone_;
  std::jthread watch_;  // last: the thread uses gone_
};

}  // namespace kiln::scheduler
