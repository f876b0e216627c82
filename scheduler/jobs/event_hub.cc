#include "scheduler/jobs/event_hub.h"

#include <chrono>

namespace kiln::scheduler {

uint64_t EventHub::VersionLocked(const std::string& job_id) const {
  const auto it = versions_.find(job_id);
  return it == versions_.end() ? 0 : it->second;
}

uint64_t EventHub::version(const std::string& job_id) const {
  std::lock_guard lock(mutex_);
  return VersionLocked(job_id);
}

void EventHub::Notify(const std::string& job_id) {
  std::lock_guard lock(mutex_);
  ++versions_[job_id];
  changed_.notify_all();
}

uint64_t EventHub::Wait(const std::string& job_id, uint64_t seen, absl::Duration timeout) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoMilliseconds(timeout),
                    [&] { return closed_ || VersionLocked(job_id) != seen; });
  return VersionLocked(job_id);
}

void EventHub::Close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

bool EventHub::closed() const {
  std::lock_guard lock(mutex_);
  return closed_;
}

}  // namespace kiln::scheduler
