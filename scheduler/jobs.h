// All jobs: takes them in, runs the most urgent ones, cancels them, and resumes the unfinished ones
// of an earlier process.
//
//   queued -> running -> succeeded | failed | cancelled        (each change is in the store first)
//     ^          |                        |           |
//     +- stopped-+                        +-- Resume -+
//
// A job that was running when two processes in a row died, without a result in between, is set
// aside as failed: nothing that a job holds keeps a scheduler from starting. Of those that saw one
// death so, one at a time runs until it has a result, so that the next death says which one it was.
//
// Thread-safe. A fixed number of threads, each with one running job; the others wait by priority,
// then age.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "scheduler/event_hub.h"
#include "scheduler/job_run.h"
#include "scheduler/job_spec.h"
#include "store/store.h"

namespace kiln::scheduler {

class Jobs {
 public:
  struct Options {
    int max_running = 8;
    // Which unfinished jobs of an earlier process go on by themselves: "all", "none", or the one of
    // this id. The others wait for Resume.
    std::string unfinished = "all";
    // Unfinished jobs that are taken, of one user and in all.
    size_t most_of_a_user = 1'000;
    size_t most_jobs = 10'000;
    DispatchOptions dispatch;
    std::chrono::milliseconds store_pause{1'000};  // see RunContext
    // So long a request waits for a database that is away, before its error is the answer.
    std::chrono::milliseconds request_patience{20'000};
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

  // Requests wait for a database that is away, as jobs do, up to Options::request_patience; and end
  // soon, with Cancelled, when `gone` says that nobody waits for the answer any more.

  // The id of the new job, or of the one that was made for this request before ("": none was);
  // InvalidArgument as CheckJobSpec, ResourceExhausted when there are too many.
  StatusOr<std::string> Submit(const v1::JobSpec& spec, const std::string& request_id = {},
                               const std::stop_token& gone = {});
  // OK also for a job that is cancelled already; FailedPrecondition when it ended in another way.
  Status Cancel(const std::string& job_id, const std::stop_token& gone = {});
  // A job that was cancelled, that failed, or that an earlier process left unfinished is queued
  // again and goes on with what it has; OK for one that is queued or runs. FailedPrecondition when
  // it succeeded.
  Status Resume(const std::string& job_id, const std::stop_token& gone = {});

  // Status as of now. `job` is a row of the store.
  StatusOr<v1::JobStatus> StatusOf(const store::JobRow& job) const;

 private:
  struct Request;

  Status SetAside(const store::JobRow& job);
  void RunLoop();
  // Of the queue, the next job to run; its end when none may; lock held.
  std::list<store::JobRow>::iterator MostUrgent();
  bool ASuspectRuns() const;
  Status CheckRoom(const std::string& user) const;
  // Does `work` as the only one that takes jobs in: they are queued in the order of the store. What
  // waits for the database holds up no job that runs.
  Status TakeIn(Request& request, const std::function<Status()>& work);
  StatusOr<store::JobRow> AddJob(Request& request, const CheckedJob& checked);
  Status Reopen(Request& request, const std::string& job_id);
  void Enqueue(store::JobRow job);
  bool InHand(const std::string& job_id) const;
  Status Stopping() const;
  void RunJob(JobRun& run);
  void SetState(JobRun& run, store::JobState state, std::string_view message);
  int64_t NowMs() const;

  store::Store& store_;
  EventHub& events_;
  const Options options_;
  Clock& clock_;
  RunContext context_;

  std::stop_source stop_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  bool taking_in_ = false;
  std::list<store::JobRow> queue_;  // by age; without their specs, which may be large
  std::map<std::string, std::shared_ptr<JobRun>> running_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace kiln::scheduler
