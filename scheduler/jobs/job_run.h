// One run of one job: leases a device, completes the tasks with its facts, rebuilds from the
// records what earlier runs learned, tunes until the trials are used up, and measures the best
// candidates again. The phases stand in files of their own:
//
//   device_lease        the first lease, which says what the device is
//   job_history         facts from the job's own records
//   known_tasks         trials of other jobs that count as the job's own
//   shared_search       tasks that other jobs tune meanwhile
//   warm_start          facts from other jobs' records
//   job_search          policies and options for the tuning loop (search/tuning/tune.h)
//   dispatch_job        the job as the dispatcher takes it
//   finalist_selection  the candidates that are measured again
//   time_budget         how long all phases may take
//   job_ending          why the job ended, and its remark
//   run_status          what people see of the job meanwhile
//
// A job may have parts that a process of the user serves (ServedCode). Such a run needs the process
// from its begin. If the process goes, the run ends at its next call to the process: it gives its
// workers back, and another run goes on once a process is connected.
//
// A run ends early if only tasks are left that other jobs tune (shared_tasks.h): it gives its
// workers back, and another run goes on with their results.
//
// A run that is stopped, or whose process dies, leaves the job unfinished. Another run goes on from
// the records: every trial number is used exactly once.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "scheduler/callbacks/callback_hub.h"
#include "scheduler/callbacks/served_search.h"
#include "scheduler/dispatch/dispatch.h"
#include "scheduler/dispatch/lease_factory.h"
#include "scheduler/jobs/device_lease.h"
#include "scheduler/jobs/job_search.h"
#include "scheduler/jobs/retrying_store.h"
#include "scheduler/jobs/run_status.h"
#include "scheduler/jobs/shared_search.h"
#include "scheduler/jobs/task_tuners.h"
#include "scheduler/jobs/time_budget.h"
#include "scheduler/values/job_spec.h"
#include "scheduler/values/messages.h"
#include "search/tuning/search_turns.h"
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
  // Turns of the searches of all jobs. Null: there is no limit.
  search::SearchTurns* turns = nullptr;
  // Bounds what the searches of all jobs keep. Null: there is no bound.
  search::KeptAllowances* allowances = nullptr;
  CallbackHub* callbacks = nullptr;
  std::function<void(const std::string& job_id)> changed;  // called when the status has changed
  // Called after each commit of results.
  std::function<void(const std::string& job_id)> committed;
  std::function<void()> has_device = nullptr;  // called when a run has its first device
};

class JobRun {
 public:
  // Ignores the spec in `job`: Run reads the spec from the store.
  JobRun(const RunContext& context, store::JobRow job);

  // Blocks until the job is done. Returns a remark: "", or why the job took fewer trials than
  // asked. Cancelled after Stop. Any other error says why the job failed.
  StatusOr<std::string> Run();

  // Any thread may call Stop, any number of times, also before Run.
  void Stop();
  // Stops like Stop, but the trials that runners have in hand are finished first. Stop may follow.
  void Pause();
  // Stops so that another job can have the place; the job goes back to the queue.
  void MakeWay();
  bool makes_way() const { return makes_way_; }
  // Tells whether Run has ended because no process of the user serves the job any more. Call after
  // Run.
  bool lost_process() const { return lost_process_; }
  // Tells for each task whether the run has ended because only this task and others are left that
  // other jobs tune. Empty if it ended otherwise. Call after Run.
  const std::vector<bool>& left_to_others() const { return left_to_others_; }
  // The jobs that tune the job's tasks. Any thread may set them.
  TaskTuners& tuners() { return tuners_; }
  const TaskTuners& tuners() const { return tuners_; }
  LiveStatus live() const;
  // Tells whether the store has a result of this run.
  bool has_result() const { return has_result_; }

  const store::JobRow& job() const { return job_; }
  // The store for this run: calls wait while the database is away, until Stop.
  store::Store& store() { return store_; }

 private:
  StatusOr<CheckedJob> ReadJob();
  // Connects the run to the user's process, if parts of the job are served.
  Status BeginServed(const CheckedJob& job);
  // Runs the job on a device.
  StatusOr<std::string> RunOnDevice(const CheckedJob& job);
  // Returns none unless the user's process builds.
  OwnBuilds OwnBuildsOfJob();
  StatusOr<search::Models> ModelsOf(const CheckedJob& job, const LeasedDevice& device);
  // Ends the search and the calls to workers.
  void EndSearch();
  // Returns false for a job that was done when its process died.
  StatusOr<bool> NeedsDevice(const CheckedJob& job);
  StatusOr<LeasedDevice> WaitForDevice(const CheckedJob& job);
  StatusOr<std::string> Tune(const CheckedJob& job, LeasedDevice device);
  // Takes what other jobs have measured of the same tasks. Returns the tasks with it.
  StatusOr<std::vector<store::TaskRow>> TakeKnown(const CheckedJob& job,
                                                  const LeasedDevice& device);
  // Returns the job's part in the tasks that other jobs tune, too. The arguments outlive it.
  SharedSearch ShareSearch(const CheckedJob& job, const LeasedDevice& device,
                           const WarmStart& start, const std::vector<store::TaskRow>& rows,
                           std::vector<std::string> tuners_before);
  StatusOr<WarmStart> StartWarm(const CheckedJob& job, const LeasedDevice& device,
                                const search::Models& models);
  // Runs the job from its first trial to the end of the final race.
  Status Measure(const CheckedJob& job, JobSearch& search, Dispatcher::Job dispatch,
                 LeasedWorker first_runner);
  // Searches, unless an earlier run ended the search.
  Status Search(const CheckedJob& job, JobSearch& search, Dispatcher& dispatcher);
  // Measures the best candidates of each task at length, unless their order is known already.
  Status MeasureFinalists(const CheckedJob& job, Dispatcher& dispatcher);
  StatusOr<std::string> Remark(const CheckedJob& job);

  // Notes that the job has fewer trials than it should have for its tasks.
  void NoteFewTrials(const CheckedJob& job);
  void ShowEstimate(const search::TaskScheduler& tasks);
  Status KeepRound(const search::MeasuredRound& round);
  Status KeepProgress();
  void SetPhase(std::string phase);
  LeaseSpec SpecOf(v1::WorkerKind kind, std::string key) const;

  const RunContext& context_;
  const store::JobRow job_;
  const int64_t started_ms_;  // when the job's first run started
  TimeBudget budget_;         // budget_ and ending_ belong to the thread that calls Run
  store::JobEnding ending_;
  int64_t progress_due_ms_ = 0;  // the end of a round before it does not keep the progress
  std::stop_source stop_;
  std::atomic<bool> stopped_{false};
  // Requested by Stop, and not by Pause.
  std::stop_source stop_trials_;
  std::atomic<bool> drains_{false};
  std::atomic<bool> makes_way_{false};
  // Ends the search: requested by Stop, and when the user's code has failed.
  std::stop_source search_stop_;
  std::atomic<bool> search_stopped_{false};
  bool lost_process_ = false;
  bool awaits_others_ = false;  // whether the search has ended for the reason of left_to_others_
  std::vector<bool> left_to_others_;
  std::atomic<bool> has_result_{false};
  TaskTuners tuners_;
  RetryingStore store_;
  std::unique_ptr<ServedSearch> served_;  // null: nothing of the job is served
  // status_ asks the leases why no worker comes, so they outlive it.
  Leases first_, builders_, runners_;
  RunStatus status_;
};

}  // namespace kiln::scheduler
