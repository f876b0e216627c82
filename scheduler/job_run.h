// One run of one job: leases a device, completes the tasks by what it is, rebuilds what earlier
// runs learned from the records, tunes until the trials are used up, and measures the best
// candidates again. The phases stand in files of their own:
//
//   device_lease        the first lease, which says what the device is
//   job_history         what the job's own records say
//   warm_start          what other jobs' records say
//   job_search          policies and options for the tuning loop (search/tuning/tune.h)
//   dispatch_job        the job as the dispatcher takes it
//   finalist_selection  whose candidates are measured again
//   time_budget         how long all that may take
//   job_ending          why it ended, and what is said of it
//   run_status          what people see of it meanwhile
//
// A run that is stopped, or whose process dies, leaves the job unfinished; another run goes on from
// the records: every trial number is used exactly once.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "scheduler/device_lease.h"
#include "scheduler/dispatch.h"
#include "scheduler/job_search.h"
#include "scheduler/job_spec.h"
#include "scheduler/lease_factory.h"
#include "scheduler/messages.h"
#include "scheduler/retrying_store.h"
#include "scheduler/run_status.h"
#include "scheduler/time_budget.h"
#include "search/tuning/tune.h"
#include "store/store.h"

namespace kiln::scheduler {

// Outlives the runs.
struct RunContext {
  store::Store* store = nullptr;
  std::chrono::milliseconds store_pause{
      1'000};  // before a call that the medium refused is repeated
  LeaseFactory leases;
  DispatchOptions dispatch;
  std::function<void(const std::string& job_id)> changed;  // after each commit
};

class JobRun {
 public:
  // Of the job's row the spec is not looked at: Run reads it.
  JobRun(const RunContext& context, store::JobRow job);

  // Blocks until the job is done: OK with a remark ("" or why it took fewer trials than asked).
  // Cancelled after Stop; any other error: why the job failed.
  StatusOr<std::string> Run();

  // Any thread, any number of times, also before Run.
  void Stop();
  LiveStatus live() const;
  // Whether a result of this run is in the store.
  bool has_result() const { return has_result_; }

  const store::JobRow& job() const { return job_; }
  // The store as this run uses it: calls wait while the database is away, until Stop.
  store::Store& store() { return store_; }

 private:
  StatusOr<CheckedJob> ReadJob();
  // A job that was done when its process died needs no device.
  StatusOr<bool> NeedsDevice(const CheckedJob& job);
  StatusOr<LeasedDevice> WaitForDevice(const CheckedJob& job);
  StatusOr<std::string> Tune(const CheckedJob& job, LeasedDevice device);
  StatusOr<WarmStart> StartWarm(const CheckedJob& job, const LeasedDevice& device,
                                const search::Models& models);
  // From the first trial to the end of the final race.
  Status Measure(const CheckedJob& job, JobSearch& search, Dispatcher::Job dispatch,
                 LeasedWorker first_runner);
  // The search, unless an earlier run ended it.
  Status Search(const CheckedJob& job, JobSearch& search, Dispatcher& dispatcher);
  // The best candidates of each task, at length; where that is known already, none.
  Status MeasureFinalists(const CheckedJob& job, Dispatcher& dispatcher);
  StatusOr<std::string> Remark(const CheckedJob& job);

  // That there are fewer trials than tasks.
  void NoteFewTrials(const CheckedJob& job);
  void ShowEstimate(const search::TaskScheduler& tasks);
  Status KeepRound(const search::MeasuredRound& round);
  Status KeepProgress();
  void SetPhase(std::string phase);
  LeaseSpec SpecOf(v1::WorkerKind kind, std::string key) const;

  const RunContext& context_;
  const store::JobRow job_;
  const int64_t started_ms_;  // of the job's first run
  TimeBudget budget_;         // these two: of the thread that calls Run
  store::JobEnding ending_;
  std::stop_source stop_;
  std::atomic<bool> stopped_{false};
  std::atomic<bool> has_result_{false};
  RetryingStore store_;
  // The status asks them why nobody comes, so they stay to the end.
  Leases first_, builders_, runners_;
  RunStatus status_;
};

}  // namespace kiln::scheduler
