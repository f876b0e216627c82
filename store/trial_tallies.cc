#include "store/trial_tallies.h"

#include <algorithm>
#include <utility>

namespace kiln::store {

std::optional<TrialCounts> TrialTallies::Find(std::string_view job_id) const {
  std::lock_guard lock(mutex_);
  const auto job = jobs_.find(job_id);
  return job == jobs_.end() ? std::nullopt : std::optional(job->second.counts);
}

bool TrialTallies::Knows(std::string_view job_id) const {
  std::lock_guard lock(mutex_);
  return jobs_.contains(job_id);
}

void TrialTallies::Begin(std::string_view job_id, Tally tally) {
  std::lock_guard lock(mutex_);
  if (jobs_.size() >= kMostJobs && !jobs_.contains(job_id)) jobs_.clear();
  jobs_.insert_or_assign(std::string(job_id), std::move(tally));
}

void TrialTallies::Add(const Record& record) {
  std::lock_guard lock(mutex_);
  const auto job = jobs_.find(record.job_id);
  if (job == jobs_.end()) return;
  auto& [counts, runners] = job->second;
  ++counts.total;
  ++counts.by_task[record.task_index];
  ++counts.by_error[static_cast<size_t>(record.error)];
  counts.next_trial = std::max(counts.next_trial, record.trial + 1);
  // The time of an import is not known.
  if (record.run_s > 0) counts.run_s += record.run_s;
  counts.remeasured_run_s += record.remeasured_run_s;
  if (!record.runner.empty() && !runners.contains(record.runner)) runners.insert(record.runner);
  counts.runners = static_cast<int64_t>(runners.size());
}

void TrialTallies::Change(const Record& before, const Record& after) {
  std::lock_guard lock(mutex_);
  const auto job = jobs_.find(before.job_id);
  if (job == jobs_.end()) return;
  TrialCounts& counts = job->second.counts;
  --counts.by_error[static_cast<size_t>(before.error)];
  ++counts.by_error[static_cast<size_t>(after.error)];
  counts.remeasured_run_s += after.remeasured_run_s - before.remeasured_run_s;
}

void TrialTallies::Forget(std::string_view job_id) {
  std::lock_guard lock(mutex_);
  if (const auto job = jobs_.find(job_id); job != jobs_.end()) jobs_.erase(job);
}

void TrialTallies::ForgetAll() {
  std::lock_guard lock(mutex_);
  jobs_.clear();
}

}  // namespace kiln::store
