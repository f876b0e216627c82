// A fixed number of threads that run functions from one queue, in order of Submit.
//
// The pool owns its threads and the functions given to it; what a function refers to is the
// caller's and must live until the function has run. Submit and Wait may be called by any thread;
// but a function that runs in the pool must not Wait for the same pool (it would wait for itself).
// The destructor runs what is queued, then joins. Functions must not throw.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace kiln {

class ThreadPool {
 public:
  // threads <= 0: one for each CPU this process may use.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(threads_.size()); }

  void Submit(std::function<void()> function);
  // Until everything submitted so far has run.
  void Wait();

  // body(i) for all i in [0, count), by the pool's threads and the calling one, which may be one of
  // the pool's. Returns when all are done. Which thread runs which i is not fixed: let results and
  // seeds depend on i alone.
  void ParallelFor(int64_t count, const std::function<void(int64_t)>& body);

 private:
  void Loop();

  std::mutex mutex_;
  std::condition_variable work_, idle_;
  std::deque<std::function<void()>> queue_;
  int running_ = 0;
  bool stopping_ = false;
  std::vector<std::jthread> threads_;
};

// The CPUs this process may use (its affinity mask), at least 1.
int AvailableCpus();

}  // namespace kiln
