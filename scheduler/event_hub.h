// Tells those who watch a job that something about it has changed. It carries no events: what
// changed is read from the store, so a slow watcher costs nothing and misses nothing.
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
  // Read it before the store: a change that comes after the reading is seen by Wait.
  uint64_t version(const std::string& job_id) const;
  void Notify(const std::string& job_id);
  // Until the version is another than `seen`, the hub is closed, or `timeout`. Returns the version.
  uint64_t Wait(const std::string& job_id, uint64_t seen, absl::Duration timeout) const;

  // Ends all waiting, now and later.
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
