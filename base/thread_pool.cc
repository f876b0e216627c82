#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <memory>

namespace kiln {

int AvailableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

ThreadPool::ThreadPool(int threads) {
  if (threads <= 0) threads = AvailableCpus();
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  // Joins the threads.
  threads_.clear();
}

void ThreadPool::Loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::function<void()> function = std::move(queue_.front());
    queue_.pop_front();
    ++running_;
    lock.unlock();
    function();
    // Releases what the function holds before Wait returns.
    function = nullptr;
    lock.lock();
    --running_;
    if (running_ == 0 && queue_.empty()) idle_.notify_all();
  }
}

void ThreadPool::Submit(std::function<void()> function) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(std::move(function));
  }
  work_.notify_one();
}

void ThreadPool::Wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  idle_.wait(lock, [&] { return running_ == 0 && queue_.empty(); });
}

void ThreadPool::ParallelFor(int64_t count, const std::function<void(int64_t)>& body) {
  // Helpers may start after the loop is over, when `body` is gone. They then find no index left.
  struct Shared {
    std::atomic<int64_t> next{0};
    std::mutex mutex;
    std::condition_variable all_done;
    int64_t done = 0;
  };
  if (count <= 0) return;
  auto shared = std::make_shared<Shared>();
  auto work = [shared, count, &body] {
    int64_t finished = 0;
    for (int64_t i; (i = shared->next.fetch_add(1)) < count; ++finished) body(i);
    if (finished == 0) return;
    std::lock_guard<std::mutex> lock(shared->mutex);
    shared->done += finished;
    if (shared->done == count) shared->all_done.notify_all();
  };
  const int64_t helpers = std::min<int64_t>(size(), count - 1);
  for (int64_t i = 0; i < helpers; ++i) Submit(work);
  work();
  std::unique_lock<std::mutex> lock(shared->mutex);
  shared->all_done.wait(lock, [&] { return shared->done == count; });
}

}  // namespace kiln
