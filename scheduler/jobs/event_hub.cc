#include "scheduler/jobs/event_hub.h"

#include <chrono>

namespace kiln::scheduler {

uint64_t EventHub::version(const std::string& job_id) const {
  std::lock_guard lock(mutex_);
  const auto job = jobs_.find(job_id);
  return job == jobs_.end() ? 0 : job->second.version;
}

uint64_t EventHub::status_version(const std::string& job_id) const {
  std::lock_guard lock(mutex_);
  const auto job = jobs_.find(job_id);
  return job == jobs_.end() ? 0 : job->second.status_version;
}

void EventHub::Notify(const std::string& job_id) {
  std::lock_guard lock(mutex_);
  Job& job = jobs_[job_id];
  ++job.version;
  ++job.status_version;
  job.changed.notify_all();
}

void EventHub::NotifyResults(const std::string& job_id) {
  std::unique_lock lock(mutex_);
  Job& job = jobs_[job_id];
  ++job.version;
  // Watchers would wait for the lock if they were woken within it.
  lock.unlock();
  job.changed.notify_all();
}

uint64_t EventHub::Wait(const std::string& job_id, uint64_t seen, absl::Duration timeout) const {
  std::unique_lock lock(mutex_);
  Job& job = jobs_[job_id];
  job.changed.wait_for(lock, absl::ToChronoMilliseconds(timeout),
                       [&] { return closed_ || job.version != seen; });
  return job.version;
}

void EventHub::Close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  for (auto& [id, job] : jobs_) job.changed.notify_all();
}

bool EventHub::closed() const {
  std::lock_guard lock(mutex_);
  return closed_;
}

}  // namespace kiln::scheduler
