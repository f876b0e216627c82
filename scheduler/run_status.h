// What people see of a job while it runs. The run writes it, anyone reads it: thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "scheduler/dispatch.h"
#include "scheduler/messages.h"

namespace kiln::scheduler {

class RunStatus {
 public:
  // Why no worker comes; "" when nothing is known (Leases::why_waiting). Called with the lock held.
  using WhyWaiting = std::function<std::string()>;

  // From now on the job waits for its first device.
  void WaitForDevice(WhyWaiting why);
  // What the last device was refused for.
  void SetProblem(std::string problem);
  // The wait is over. `notice`: what the user should know of the device; "": nothing.
  void SetDevice(std::string device, std::string notice);
  // "": it searches.
  void SetPhase(std::string phase);
  // The expected objective while a task has no result (search/tuning/estimate_phase.h); "": nothing
  // is estimated. It is shown as the phase of a job that searches.
  void SetEstimate(std::string estimate);
  // A sentence that the user should know before the first trial.
  void AddNotice(std::string notice);
  // Of the newest round.
  void SetNextTask(uint32_t task);
  // What earlier jobs measured, and for people what the search begins with.
  void SetKnown(std::vector<LiveStatus::Known> known, std::vector<std::string> notices);

  // The dispatcher is asked until ClearDispatcher.
  void SetDispatcher(const Dispatcher& dispatcher, WhyWaiting for_builder, WhyWaiting for_runner);
  void ClearDispatcher();

  // All but what the store knows.
  LiveStatus Read() const;

 private:
  void ReadDispatcher(LiveStatus& live) const;

  mutable std::mutex mutex_;
  std::string device_;
  std::string device_notice_;
  std::string problem_;
  std::string phase_;
  std::string estimate_;
  std::vector<std::string> notices_;
  std::optional<uint32_t> next_task_;
  std::vector<LiveStatus::Known> known_;
  std::vector<std::string> known_notices_;
  WhyWaiting for_device_;  // null: it has one
  const Dispatcher* dispatcher_ = nullptr;
  WhyWaiting for_builder_, for_runner_;
};

}  // namespace kiln::scheduler
