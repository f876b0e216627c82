// A fixed number of threads that run functions from one queue, in order of Submit.
//
// The pool owns its threads and the functions given to it. Objects that a function refers to belong
// to the caller and must live until the function has run. Any thread may call Submit and Wait, but
// a function that runs in the pool must not Wait for the same pool, because it would wait for
// itself. The destructor runs all queued functions, then joins. Functions must not throw.
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
  // Waits until all functions submitted so far have run.
  void Wait();

  // Calls body(i) for all i in [0, count), on the pool's threads and the calling thread, which may
  // be one of the pool's. Returns when all calls are done. It is not fixed which thread runs which
  // i, so results and seeds must depend on i alone.
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

// Returns the number of CPUs that this process may use (its affinity mask), at least 1.
int AvailableCpus();

}  // namespace kiln
