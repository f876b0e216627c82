// The jobs that tune tasks of a running job (shared_tasks.h). Jobs tells it, the search of the run
// asks.
//
// Thread-safe. Set and OnChange call nothing else with the lock held than the function that
// OnChange was given, so that function must not call back.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace kiln::scheduler {

class TaskTuners {
 public:
  // Sets the tuner of each task; "": the job tunes it by itself.
  void Set(std::vector<std::string> tuners) {
    std::lock_guard lock(mutex_);
    if (tuners_ == tuners) return;
    tuners_ = std::move(tuners);
    if (changed_ != nullptr) changed_();
  }
  // Returns what was set last, or nothing if nothing was.
  std::vector<std::string> Get() const {
    std::lock_guard lock(mutex_);
    return tuners_;
  }

  // Has each change call `changed`, in the thread that calls Set. Null: nothing is called from now
  // on.
  void OnChange(std::function<void()> changed) {
    std::lock_guard lock(mutex_);
    changed_ = std::move(changed);
  }

  // The device that the run measures on. "": it has none yet.
  void SetDevice(std::string device) {
    std::lock_guard lock(mutex_);
    device_ = std::move(device);
  }
  std::string device() const {
    std::lock_guard lock(mutex_);
    return device_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> tuners_;
  std::string device_;
  std::function<void()> changed_;
};

}  // namespace kiln::scheduler
