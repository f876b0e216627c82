// Tells the watchers of a job that something about it has changed. The hub carries no events: a
// watcher reads the change from the store, so a slow watcher costs nothing and misses nothing.
//
// Thread-safe. Memory: one number per job that ever changed.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "absl/time/time.h"

namespace kiln::scheduler {

class EventHub {
 public:
  // A watcher reads the version before it reads the store. Wait then sees every later change.
  uint64_t version(const std::string& job_id) const;
  void Notify(const std::string& job_id);
  // Waits until the version differs from `seen`, the hub is closed, or `timeout` has passed.
  // Returns the version.
  uint64_t Wait(const std::string& job_id, uint64_t seen, absl::Duration timeout) const;

  // Ends all waits, now and later.
  void Close();
  bool closed() const;

 private:
  uint64_t VersionLocked(const std::string& job_id) const;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<std::string, uint64_t> versions_;
  bool closed_ = false;
};

}  // namespace kiln::scheduler
