#include "scheduler/values/helper_threads.h"

#include <memory>
#include <utility>

namespace kiln::scheduler {

void HelperThreads::Run(std::function<void()> work) {
  std::vector<std::thread> finished;
  {
    std::lock_guard lock(mutex_);
    ++running_;
    finished.swap(finished_);
  }
  for (std::thread& thread : finished) thread.join();
  // The thread hands itself over when it ends, so its handle is at a place that both know.
  auto handle = std::make_shared<std::thread>();
  std::lock_guard lock(mutex_);
  *handle = std::thread([this, handle, work = std::move(work)]() mutable {
    work();
    work = nullptr;
    std::lock_guard done(mutex_);
    finished_.push_back(std::move(*handle));
    --running_;
    ended_.notify_all();
  });
}

void HelperThreads::Join() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return running_ == 0; });
  std::vector<std::thread> finished = std::exchange(finished_, {});
  lock.unlock();
  for (std::thread& thread : finished) thread.join();
}

}  // namespace kiln::scheduler
