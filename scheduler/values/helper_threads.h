// Runs work that blocks, each piece in a thread of its own, so that the threads that bring answers
// are never held up.
//
// Thread-safe. The destructor waits for all work. Cost: a thread is made for each piece, which
// takes some 20 us.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace kiln::scheduler {

class HelperThreads {
 public:
  HelperThreads() = default;
  ~HelperThreads() { Join(); }
  HelperThreads(const HelperThreads&) = delete;
  HelperThreads& operator=(const HelperThreads&) = delete;

  void Run(std::function<void()> work);
  // Waits until all work has ended.
  void Join();

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  int running_ = 0;
  std::vector<std::thread> finished_;  // their work has ended
};

}  // namespace kiln::scheduler
