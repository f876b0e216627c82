#include "store/trial_times.h"

#include <algorithm>

namespace kiln::store {

std::optional<uint64_t> TrialTimes::CountSince(std::string_view job_id, int64_t since_s) const {
  std::lock_guard lock(mutex_);
  const auto job = jobs_.find(job_id);
  if (job == jobs_.end()) return std::nullopt;
  const Sums& sums = job->second;
  if (sums.empty()) return 0;
  const auto first = std::ranges::lower_bound(sums, since_s, {}, &Second::at_s);
  return sums.back().trials - (first == sums.begin() ? 0 : std::prev(first)->trials);
}

void TrialTimes::Begin(std::string_view job_id, const std::vector<Second>& seconds) {
  std::lock_guard lock(mutex_);
  if (const auto job = jobs_.find(job_id); job != jobs_.end()) {
    seconds_ -= job->second.size();
    jobs_.erase(job);
  }
  if (seconds_ + seconds.size() > kMostSeconds) {
    jobs_.clear();
    seconds_ = 0;
  }
  Sums& sums = jobs_[std::string(job_id)];
  uint64_t sum = 0;
  for (const Second& second : seconds) {
    sum += second.trials;
    sums.push_back({second.at_s, sum});
  }
  seconds_ += sums.size();
}

void TrialTimes::Add(std::string_view job_id, int64_t at_s) {
  std::lock_guard lock(mutex_);
  const auto job = jobs_.find(job_id);
  if (job == jobs_.end()) return;
  Sums& sums = job->second;
  auto at = sums.end();
  while (at != sums.begin() && std::prev(at)->at_s >= at_s) --at;
  if (at == sums.end() || at->at_s != at_s) {
    if (seconds_ >= kMostSeconds) {
      jobs_.clear();
      seconds_ = 0;
      return;
    }
    at = sums.insert(at, {at_s, at == sums.begin() ? 0 : std::prev(at)->trials});
    ++seconds_;
  }
  for (; at != sums.end(); ++at) ++at->trials;
}

void TrialTimes::ForgetAll() {
  std::lock_guard lock(mutex_);
  jobs_.clear();
  seconds_ = 0;
}

}  // namespace kiln::store
