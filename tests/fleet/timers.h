// Calls functions at given times, in one thread of its own. Functions must not block.
//
// Thread-safe. The destructor drops the calls that are not due yet.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

namespace kiln::fleet {

class Timers {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  Timers() : thread_([this] { Run(); }) {}
  ~Timers() {
    {
      std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void At(TimePoint time, std::function<void()> call) {
    bool is_first = false;
    {
      std::lock_guard lock(mutex_);
      is_first = due_.empty() || time < due_.top().time;
      due_.push({time, ++number_, std::move(call)});
    }
    if (is_first) changed_.notify_all();
  }

 private:
  struct Due {
    TimePoint time;
    uint64_t number = 0;  // calls of one time are made in their order
    std::function<void()> call;
    bool operator<(const Due& other) const {
      return std::pair(other.time, other.number) < std::pair(time, number);
    }
  };

  void Run() {
    std::unique_lock lock(mutex_);
    while (!ends_) {
      if (due_.empty()) {
        changed_.wait(lock);
      } else if (const TimePoint next = due_.top().time; next > std::chrono::steady_clock::now()) {
        changed_.wait_until(lock, next);
      } else {
        const std::function<void()> call = due_.top().call;
        due_.pop();
        lock.unlock();
        call();
        lock.lock();
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::priority_queue<Due> due_;
  uint64_t number_ = 0;
  bool ends_ = false;
  std::thread thread_;  // last: it uses the other members
};

}  // namespace kiln::fleet
