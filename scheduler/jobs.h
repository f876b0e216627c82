// All jobs: takes them in, runs the most urgent ones, cancels them, and resumes the unfinished ones
// of an earlier process.
//
//   queued -> running -> succeeded | failed | cancelled        (each change is in the store first)
//
// Thread-safe. A fixed number of threads, each with one running job; the others wait by priority,
// then age.
#pragma once

#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "scheduler/event_hub.h"
#include "scheduler/job_run.h"
#include "store/store.h"

namespace kiln::scheduler {

class Jobs {
 public:
  struct Options {
    int max_running = 8;
    DispatchOptions dispatch;
  };

  // Store and hub outlive this.
  Jobs(store::Store& store, LeaseFactory leases, EventHub& events, const Options& options,
       Clock& clock = Clock::Real());
  // Stops.
  ~Jobs();

  // Loads the unfinished jobs and begins to run. Call once.
  Status Start();
  // Running jobs end at once and stay unfinished in the store. Blocks until they have. Final.
  void Stop();

  // The id of the new job; InvalidArgument as CheckJobSpec.
  StatusOr<std::string> Submit(const v1::JobSpec& spec);
  // OK also for a job that is cancelled already; FailedPrecondition when it ended in another way.
  Status Cancel(const std::string& job_id);

  // Status as of now. `job` is a row of the store.
  StatusOr<v1::JobStatus> StatusOf(const store::JobRow& job) const;

 private:
  void RunLoop();
  // The next job to run, off the queue; lock held.
  store::JobRow TakeMostUrgent();
  void RunJob(JobRun& run, const store::JobRow& job);
  void SetState(const std::string& job_id, store::JobState state, std::string_view message);
  int64_t NowMs() const;

  store::Store& store_;
  EventHub& events_;
  const Options options_;
  Clock& clock_;
  RunContext context_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<store::JobRow> queue_;  // by age
  std::map<std::string, std::shared_ptr<JobRun>> running_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace kiln::scheduler
