// The facts about a running job that people see. The run writes them, any thread reads them:
// thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "scheduler/dispatch/dispatch.h"
#include "scheduler/values/messages.h"

namespace kiln::scheduler {

class RunStatus {
 public:
  // Returns the reason why no worker comes, or "" if none is known (Leases::why_waiting). Called
  // with the lock held.
  using WhyWaiting = std::function<std::string()>;

  // The job waits for its first device from now on.
  void WaitForDevice(WhyWaiting why);
  // The reason why the last device was refused.
  void SetProblem(std::string problem);
  // The job has its device. `notice` is a sentence for the user about the device, or "".
  void SetDevice(std::string device, std::string notice);
  // "" stands for the search.
  void SetPhase(std::string phase);
  // The expected objective while a task has no result (search/tuning/estimate_phase.h); "" if
  // nothing is estimated. The estimate is shown as the phase of a job that searches.
  void SetEstimate(std::string estimate);
  // A sentence that the user should know before the first trial.
  void AddNotice(std::string notice);
  // Sets the task of the newest round.
  void SetNextTask(uint32_t task);
  // Sets the results of earlier jobs, and sentences for people about the start of the search.
  void SetKnown(std::vector<LiveStatus::Known> known, std::vector<std::string> notices);

  // Sets what is known now of each task, and the jobs that tune it meanwhile ("": none).
  void SetShared(std::vector<LiveStatus::Known> known, std::vector<std::string> tuned_by);

  // The status asks the dispatcher until ClearDispatcher.
  void SetDispatcher(const Dispatcher& dispatcher, WhyWaiting for_builder, WhyWaiting for_runner);
  void ClearDispatcher();

  // Returns all facts but those that the store knows.
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
  std::vector<std::string> tuned_by_;
  std::vector<std::string> known_notices_;
  WhyWaiting for_device_;  // null once the job has a device
  const Dispatcher* dispatcher_ = nullptr;
  WhyWaiting for_builder_, for_runner_;
};

}  // namespace kiln::scheduler
