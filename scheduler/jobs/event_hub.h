// Tells the watchers of a job that something about it has changed. The hub carries no events: a
// watcher reads the change from the store, so a slow watcher costs nothing and misses nothing.
//
// Results come far more often than anything else changes, so they have a call of their own. A
// change of a job wakes the watchers of that job alone.
//
// Thread-safe. Memory: a few numbers per job that ever changed or was waited for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "absl/time/time.h"

namespace kiln::scheduler {

class EventHub {
 public:
  // A watcher of any job. It counts while it lives. The hub outlives it.
  class Watcher {
   public:
    explicit Watcher(const EventHub& hub) : hub_(hub) { ++hub_.watchers_; }
    ~Watcher() { --hub_.watchers_; }
    Watcher(const Watcher&) = delete;
    Watcher& operator=(const Watcher&) = delete;

   private:
    const EventHub& hub_;
  };
  int watchers() const { return watchers_; }

  // A watcher reads the version before it reads the store. Wait then sees every later change.
  uint64_t version(const std::string& job_id) const;
  // Grows with the changes that are more than new results.
  uint64_t status_version(const std::string& job_id) const;
  // The state of the job, or another fact of its status, has changed.
  void Notify(const std::string& job_id);
  // The store has new results of the job.
  void NotifyResults(const std::string& job_id);
  // Waits until the version differs from `seen`, the hub is closed, or `timeout` has passed.
  // Returns the version.
  uint64_t Wait(const std::string& job_id, uint64_t seen, absl::Duration timeout) const;

  // Ends all waits, now and later.
  void Close();
  bool closed() const;

 private:
  struct Job {
    uint64_t version = 0;
    uint64_t status_version = 0;
    std::condition_variable changed;
  };

  mutable std::mutex mutex_;
  mutable std::map<std::string, Job> jobs_;  // a wait makes an entry, too
  bool closed_ = false;
  mutable std::atomic<int> watchers_ = 0;
};

}  // namespace kiln::scheduler
