#include "scheduler/jobs/device_lease.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/log.h"
#include "scheduler/jobs/calibrations.h"
#include "scheduler/jobs/device_tasks.h"
#include "training/device_constants.h"

namespace kiln::scheduler {
namespace {

// A device that can't be used is left alone for so long, if there are others.
constexpr std::chrono::seconds kPauseOnBadDevice{5};
constexpr std::chrono::milliseconds kAskAgain{500};

void SleepFor(std::chrono::milliseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, time, [] { return false; });
}

}  // namespace

StatusOr<LeasedDevice> LeaseDevice(const CheckedJob& job, const std::string& job_id,
                                   LeaseSource& source, store::Store& store,
                                   const std::stop_token& stop,
                                   const std::function<void(std::string problem)>& refused) {
  std::vector<std::string> avoid;
  while (true) {
    const absl::Duration patience =
        avoid.empty() ? absl::InfiniteDuration() : absl::FromChrono(kPauseOnBadDevice);
    auto lease = source.Acquire(patience, stop, avoid);
    if (stop.stop_requested()) return Cancelled("stopped");
    if (lease.status().code() == StatusCode::kDeadlineExceeded) {
      avoid.clear();  // there is no other runner
      continue;
    }
    if (!lease.ok()) {
      refused(std::string(Message(lease.status())));
      SleepFor(kAskAgain, stop);
      continue;
    }
    auto tasks = TasksOnDevice(job, lease->worker());
    if (!tasks.ok()) {
      LogWarn("job {}: {}", job_id, Message(tasks.status()));
      refused(std::string(Message(tasks.status())));
      avoid.push_back(lease->worker().id());
      continue;
    }
    for (search::Task& task : *tasks) task.stop = stop;
    KILN_ASSIGN_OR_RETURN(device::KnownCalibration calibration,
                          training::FindCalibration(store, tasks->front().device));
    return LeasedDevice{*std::move(lease), *std::move(tasks), std::move(calibration)};
  }
}

}  // namespace kiln::scheduler
