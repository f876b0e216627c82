// One run of one job: leases a device, completes the tasks by what it is, rebuilds what earlier
// runs learned from the records, tunes until the trials are used up, and measures the best
// candidates again.
//
// A run that is stopped, or whose process dies, leaves the job unfinished; another run goes on from
// the records: every trial number is used exactly once.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "proto/lease_source.h"
#include "scheduler/dispatch.h"
#include "scheduler/experience.h"
#include "scheduler/job_spec.h"
#include "scheduler/lease_factory.h"
#include "scheduler/messages.h"
#include "scheduler/patient_store.h"
#include "search/models.h"
#include "search/tune.h"
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
  ~JobRun();

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
  struct Knowledge;
  struct Device;

  StatusOr<Device> LeaseDevice(const CheckedJob& job);
  Status Learn(const CheckedJob& job, const Device& device, Knowledge& knowledge);
  // What earlier jobs measured: trains the model, and says what is known of each task.
  struct Start {
    std::vector<TaskExperience> of_tasks;
    bool knows_others = false;  // TeachesOthers
  };
  StatusOr<Start> WarmStart(const CheckedJob& job, const Device& device,
                            const search::Models& models);
  StatusOr<std::string> Tune(const CheckedJob& job, Device device);
  // The search, unless an earlier run ended it.
  Status Search(const CheckedJob& job, Knowledge& knowledge, Dispatcher& dispatcher);
  Status KeepRound(const search::MeasuredRound& round);
  Status KeepProgress();
  // Until when the job may use its device, and of that the search; infinite without a time budget.
  // Clock::MonotonicSeconds.
  struct Deadlines {
    double search_s = std::numeric_limits<double>::infinity();
    double finals_s = std::numeric_limits<double>::infinity();
  };
  Deadlines DeadlinesOf(const CheckedJob& job) const;
  void SetPhase(std::string phase);
  // The best candidates of each task, at length; where that is known already, none.
  Status MeasureFinalists(const CheckedJob& job, Dispatcher& dispatcher);
  // Who is in the finals of a task; nobody, when further readings would not be taken. `raced`: who
  // was in them before, or would have been; those that are now are added.
  StatusOr<Finalists> FinalistsOf(const CheckedJob& job, uint32_t task, std::set<int64_t>& raced);
  StatusOr<double> BestOfWork(const CheckedJob& job, uint32_t task);
  StatusOr<bool> HasFinalists(const CheckedJob& job);
  StatusOr<std::string> Remark(const CheckedJob& job);
  void SetProblem(std::string problem);
  LeaseWish Wish(v1::WorkerKind kind, std::string key) const;

  const RunContext& context_;
  const store::JobRow job_;
  const int64_t started_ms_;   // of the job's first run
  double active_since_s_ = 0;  // Clock::MonotonicSeconds, of this run
  store::JobEnding ending_;
  std::stop_source stop_;
  std::atomic<bool> stopped_{false};
  std::atomic<bool> has_result_{false};
  PatientStore store_;

  mutable std::mutex mutex_;  // guards what live() reads
  std::string device_;
  std::string device_notice_;  // "": nothing to say
  std::string problem_;
  std::string phase_;
  uint32_t next_task_ = 0;  // 1 + index; 0: none
  std::vector<LiveStatus::Known> known_;
  bool leasing_device_ = false;
  Leases first_, builders_, runners_;
  Dispatcher* dispatcher_ = nullptr;
};

}  // namespace kiln::scheduler
