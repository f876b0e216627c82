// All jobs: takes them in, runs the most urgent ones, cancels them, and resumes the unfinished jobs
// of an earlier process.
//
//   queued -> running -> succeeded | failed | cancelled        (each change is in the store first)
//     ^          |                        |           |
//     +- stopped-+                        +-- Resume -+
//
//   queued | running -> paused -> queued     by Pause and Resume; a paused job can be cancelled
//
// A job that was running when two processes in a row died, without a result in between, is set
// aside as failed, so that no job can keep a scheduler from starting. Jobs that were running when
// one process died are suspects: only one suspect runs at a time until it has a result, so that the
// next death shows which job caused it.
//
// Thread-safe. A fixed number of threads, each with one running job. The other jobs wait, ordered
// by priority, then by what their users have had (fair_share), then by age. A job that is more
// urgent than a running one takes its place, and so does a job of a user who has no running job,
// where another user has several: the other job goes back to the queue with its results. A job with
// parts that a process of the user serves waits in the queue until such a process is connected, and
// goes back to the queue when the process is gone.
//
// A task that several jobs ask for is tuned by the first of them (shared_tasks.h); the others take
// its results (known_tasks.h). A job that runs tunes its other tasks meanwhile (shared_search.h).
// When only such tasks are left it goes back to the queue and keeps its turn. A job waits in the
// queue while other jobs tune all its tasks, or all that are left: jobs that run, and jobs that
// have begun, such as those that ran when the scheduler stopped. A job waits only for jobs before
// it in the order of jobs, so the first of those that have begun waits for none, and goes on.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "scheduler/callbacks/callback_hub.h"
#include "scheduler/fair_share/fair_shares.h"
#include "scheduler/jobs/event_hub.h"
#include "scheduler/jobs/job_run.h"
#include "scheduler/jobs/shared_tasks.h"
#include "scheduler/values/job_spec.h"
#include "search/policies/kept_allowance.h"
#include "search/tuning/search_turns.h"
#include "store/store.h"

namespace kiln::scheduler {

class Jobs {
 public:
  struct Options {
    int max_running = 8;
    // So many rounds of all jobs' searches work at once. 0: one for each CPU.
    int searches_at_once = 0;
    // Which unfinished jobs of an earlier process go on by themselves: "all", "none", the job of
    // this id, or all but those of "not:ID,ID,...". The others wait for Resume.
    std::string unfinished = "all";
    // The most unfinished jobs that are taken, from one user and in all.
    size_t most_of_a_user = 1'000;
    size_t most_jobs = 10'000;
    DispatchOptions dispatch;
    std::chrono::milliseconds store_pause{1'000};  // see RunContext
    // A request waits so long for a database that is away; then the database's error is the answer.
    std::chrono::milliseconds request_patience{20'000};
    // Shares and limits of users. Outlives this object. Null: all users are equal, and may
    // have what they like.
    FairShares* shares = nullptr;
    // Called when the store has the final state of a job that ran, in the job's thread, which it
    // must not hold up. Null: nobody asks.
    std::function<void(const std::string& job_id)> ended = nullptr;
  };

  // Store and hub outlive this object.
  Jobs(store::Store& store, LeaseFactory leases, EventHub& events, const Options& options,
       Clock& clock = Clock::Real());
  // Stops like Stop().
  ~Jobs();

  // Loads the unfinished jobs and begins to run. Call once.
  Status Start();
  // Ends running jobs at once; they stay unfinished in the store. Blocks until they have ended.
  // Final.
  void Stop();

  // Like jobs, requests wait for a database that is away, but only up to Options::request_patience.
  // A request ends soon, with Cancelled, when `gone` says that nobody waits for the answer any
  // more.

  // Returns the id of the new job, or of the job that was made earlier for the same request ("":
  // the request has no id). InvalidArgument as for CheckJobSpec, ResourceExhausted if there are too
  // many jobs.
  StatusOr<std::string> Submit(const v1::JobSpec& spec, const std::string& request_id = {},
                               const std::stop_token& gone = {});
  // The job holds no worker after the trials in hand, and goes on with Resume. OK also for a job
  // that is paused already. FailedPrecondition if the job has ended.
  Status Pause(const std::string& job_id, const std::stop_token& gone = {});
  // OK also for a job that is cancelled already. FailedPrecondition if the job ended in another
  // way.
  Status Cancel(const std::string& job_id, const std::stop_token& gone = {});
  // Queues a job again that is paused, was cancelled, failed, or was left unfinished by an earlier
  // process;
  // the job goes on with the results that it has. OK for a job that is queued or runs.
  // FailedPrecondition if the job succeeded.
  Status Resume(const std::string& job_id, const std::stop_token& gone = {});

  // Returns the current status. `job` is a row of the store.
  StatusOr<v1::JobStatus> StatusOf(const store::JobRow& job) const;

  // The processes of users that serve parts of jobs.
  CallbackHub& callbacks() { return callbacks_; }

 private:
  struct Request;
  struct Queued {
    store::JobRow row;  // without the spec, which may be large
    // The parts of the job that the user's process serves.
    std::optional<v1::ServedCode> served;
    TaskKeys keys;
    uint64_t turn = kNoTurn;
    // The tasks that keep the job in the queue while others tune them (WaitsForAll).
    TaskKeys awaited;
    // Whether the job's own part is done, so that jobs that run may wait for it.
    bool only_awaits = false;
  };
  // The part of a running job that other jobs share.
  struct Sharing {
    TaskKeys keys;
    uint64_t turn = kNoTurn;
  };

  Status SetAside(const store::JobRow& job);
  void RunLoop();
  // Returns the next job of the queue to run, or the queue's end if none may run. Lock held.
  std::list<Queued>::iterator NextJobToRun();
  bool IsSuspectJobRunning() const;
  Status CheckRoom(const std::string& user) const;
  // These return OK if the user's limits allow a job that is new, or is there already; an ended job
  // to go on; and so many further trials in one more job.
  Status CheckLimits(Request& request, const CheckedJob& checked) const;
  Status CheckLimits(Request& request, const store::JobRow& ended) const;
  Status CheckLimits(Request& request, const std::string& user, uint64_t trials) const;
  store::UserLimits LimitsOf(const std::string& user) const;
  // Has a running job make way if the next job of the queue outranks it. Lock held.
  void MakeRoom();
  bool Outranks(const Queued& queued, const JobRun& run) const;
  int RunningOf(const std::string& user) const;
  double UseOf(const std::string& user) const;
  // Runs `work` while no other request takes jobs in, so that jobs are queued in the order of the
  // store. A request that waits for the database holds up no running job.
  Status TakeIn(Request& request, const std::function<Status()>& work);
  StatusOr<store::JobRow> AddJob(Request& request, const CheckedJob& checked);
  // Waits until the run of a job that is to rest has ended: runners may have trials in hand.
  Status AwaitEnd(Request& request, const std::string& job_id);
  Status StillRuns(const std::string& job_id) const;
  Status Reopen(Request& request, const std::string& job_id);
  // Returns the job with the next turn, if it has begun. Lock held.
  Queued QueuedOf(store::JobRow job);
  void Enqueue(store::JobRow job);
  void Enqueue(Queued job);
  // Takes the job from the queue if it is there. Lock held.
  void Dequeue(const std::string& job_id);
  static JobPlace PlaceOf(const Queued& queued) { return {queued.row.priority, queued.turn}; }
  // Returns the tasks of the jobs that run, and of those in the queue that `counts` tells. Lock
  // held.
  TunedTasks TasksOfJobs(const std::function<bool(const Queued&)>& counts) const;
  TunedTasks TasksOfBegunJobs() const { return TasksOfJobs(&Jobs::HasBegun); }
  // Tells each job that runs which of its tasks other jobs tune. Lock held.
  void ShareTasks();
  // Returns the job as it goes back to the queue after its run.
  Queued QueuedAgain(store::JobRow row, const JobRun& run, Sharing sharing);
  // Says why a job of the queue waits, unless it waits for its turn. Lock held.
  void ShowWait(const Queued& queued, LiveStatus& live) const;
  // Tells whether the job goes on, when it is its turn, before jobs that have not begun.
  static bool HasBegun(const Queued& queued) { return queued.row.started_ms.has_value(); }
  // Tells whether the user's process, which the job needs, is not there.
  bool LacksProcess(const Queued& queued) const;
  // Returns the job's row if the store takes the job, whose run has ended early, as queued again.
  std::optional<store::JobRow> RequeuedRow(JobRun& run);
  bool InHand(const std::string& job_id) const;
  Status Stopping() const;
  // Returns the job's row if it goes back to the queue.
  std::optional<store::JobRow> RunJob(JobRun& run);
  void SetState(JobRun& run, store::JobState state, std::string_view message);
  int64_t NowMs() const;

  store::Store& store_;
  EventHub& events_;
  const Options options_;
  Clock& clock_;
  CallbackHub callbacks_;
  search::SearchTurns turns_;
  search::KeptAllowances allowances_;
  RunContext context_;

  std::stop_source stop_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  bool taking_in_ = false;
  std::list<Queued> queue_;  // the oldest first
  std::map<std::string, std::shared_ptr<JobRun>> running_;
  std::map<std::string, Sharing> sharing_;  // of the same jobs
  uint64_t last_turn_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace kiln::scheduler
