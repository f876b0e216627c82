#include "scheduler/jobs/run_status.h"

#include <utility>

namespace kiln::scheduler {

void RunStatus::WaitForDevice(WhyWaiting why) {
  std::lock_guard lock(mutex_);
  for_device_ = std::move(why);
}

void RunStatus::SetProblem(std::string problem) {
  std::lock_guard lock(mutex_);
  problem_ = std::move(problem);
}

void RunStatus::SetDevice(std::string device, std::string notice) {
  std::lock_guard lock(mutex_);
  device_ = std::move(device);
  device_notice_ = std::move(notice);
  problem_.clear();
  for_device_ = nullptr;
}

void RunStatus::SetPhase(std::string phase) {
  std::lock_guard lock(mutex_);
  phase_ = std::move(phase);
}

void RunStatus::SetEstimate(std::string estimate) {
  std::lock_guard lock(mutex_);
  estimate_ = std::move(estimate);
}

void RunStatus::AddNotice(std::string notice) {
  std::lock_guard lock(mutex_);
  notices_.push_back(std::move(notice));
}

void RunStatus::SetNextTask(uint32_t task) {
  std::lock_guard lock(mutex_);
  next_task_ = task;
}

void RunStatus::SetKnown(std::vector<LiveStatus::Known> known, std::vector<std::string> notices) {
  std::lock_guard lock(mutex_);
  known_ = std::move(known);
  known_notices_ = std::move(notices);
}

void RunStatus::SetShared(std::vector<LiveStatus::Known> known, std::vector<std::string> tuned_by) {
  std::lock_guard lock(mutex_);
  known_ = std::move(known);
  tuned_by_ = std::move(tuned_by);
}

void RunStatus::SetDispatcher(const Dispatcher& dispatcher, WhyWaiting for_builder,
                              WhyWaiting for_runner) {
  std::lock_guard lock(mutex_);
  dispatcher_ = &dispatcher;
  for_builder_ = std::move(for_builder);
  for_runner_ = std::move(for_runner);
}

void RunStatus::ClearDispatcher() {
  std::lock_guard lock(mutex_);
  dispatcher_ = nullptr;
}

LiveStatus RunStatus::Read() const {
  std::lock_guard lock(mutex_);
  LiveStatus live;
  live.device = device_;
  live.phase = phase_.empty() ? estimate_ : phase_;
  live.next_task = next_task_;
  live.known = known_;
  live.tuned_by = tuned_by_;
  if (for_device_ != nullptr) {
    live.waiting_for_workers = true;
    live.blocked_reason = problem_.empty() ? for_device_() : problem_;
  } else if (dispatcher_ != nullptr) {
    ReadDispatcher(live);
  }
  return live;
}

void RunStatus::ReadDispatcher(LiveStatus& live) const {
  const Dispatcher::Waiting waiting = dispatcher_->waiting();
  live.waiting_for_workers = waiting.for_builder || waiting.for_runner;
  live.busy = dispatcher_->busy();
  if (!device_notice_.empty()) live.notices.push_back(device_notice_);
  live.notices.insert(live.notices.end(), notices_.begin(), notices_.end());
  live.notices.insert(live.notices.end(), known_notices_.begin(), known_notices_.end());
  // These come last because their number grows.
  const std::vector<std::string> of_references = dispatcher_->notices();
  live.notices.insert(live.notices.end(), of_references.begin(), of_references.end());
  live.blocked_reason = waiting.problem;
  if (live.blocked_reason.empty() && waiting.for_runner) live.blocked_reason = for_runner_();
  if (live.blocked_reason.empty() && waiting.for_builder) live.blocked_reason = for_builder_();
}

}  // namespace kiln::scheduler
