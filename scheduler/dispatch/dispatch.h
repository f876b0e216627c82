// Takes trials to workers: builds ahead on all builders that it can lease, measures on all runners,
// commits each result to the store, and only then hands the outcome to the search.
//
//   Submit -> [build queue] -> builders -> [run queue] -> runners -> commit -> Next
//
// If the user builds (OwnBuilds), builders answer with a candidate's source, and further threads
// have its binary made before it goes to the run queue. No lease waits for the user's code.
//
// An infrastructure failure (a call that failed, a lease that was lost, an answer with a figure
// that is impossible) sends the trial to another worker under the same number; after max_attempts
// the trial is recorded as UNKNOWN_ERROR. A failure to reach the worker at all does not count
// against the trial. If there are no workers, the trial waits for ever.
//
// If the reference of a task takes longer than the job allows (reference_limit_s), the task gives
// it up once, for a reference that computes a sample of the outputs (sampled_reference.h).
//
// Finalists take the same way. All finalists of a task go to one runner, which measures them in
// turns (races.h). Several runners race several tasks at once. A runner whose device measures
// unlike the others takes races only if no other runner can (unlike_devices.h). If the job uses
// idle time, a runner without a trial reads the elites meanwhile (elites.h). These readings are
// written to the store once a second, and a failure at once.
//
// Submit, Next, Abandon, TakeCorrections and MeasureAgain belong to one thread; any thread may call
// the other functions. Cost: one commit for all results that came since the last commit.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "device/exclusive_phases.h"
#include "proto/scheduler.pb.h"
#include "rpc/artifact_signature.h"
#include "rpc/farm_access.h"
#include "rpc/lease_source.h"
#include "scheduler/dispatch/builder_trust.h"
#include "scheduler/remeasure/elites.h"
#include "scheduler/remeasure/races.h"
#include "scheduler/values/busy_meter.h"
#include "scheduler/values/known_runners.h"
#include "scheduler/values/sampled_reference.h"
#include "scheduler/values/worker_channels.h"
#include "search/tuning/tune.h"
#include "store/store.h"

namespace kiln::scheduler {

class QueueFigures;

// The facts that all trials of one task share.
struct DispatchTask {
  std::string workload_id, workload_key;
  std::string dag;
  std::string target;  // completed with the facts of the device
  HardwareRow hardware{};
  double flop_count = 0;
  double operations =
      0;  // the work that no program can leave out (compiler/dag/least_operations.h)
  std::optional<double> best_cost_s = {};       // best of earlier runs and jobs
  std::optional<double> reference_cost_s = {};  // empty until it is measured
  std::string description = {};                 // for people
  double plain_s = 0;                           // estimated time of the unscheduled loops
  // The elements of the outputs that are compared. Empty: all elements are.
  std::optional<SampledReference> sample = {};
  int group = 0;  // the same number for all tasks that are alternatives of each other
  // Trials and elites of earlier runs of the job.
  int trials = 0;
  std::vector<Elite> elites = {};
};

struct DispatchOptions {
  FarmAccess access;  // what the farm's workers ask for
  // The connections to workers. Jobs share them.
  std::shared_ptr<WorkerChannels> channels = std::make_shared<WorkerChannels>();
  // Judges what builders sign, so that one that forges signatures is left alone, and not the
  // runners that refuse its programs. Null: the farm has no keys.
  std::shared_ptr<ArtifactCheck> signatures = nullptr;
  // Chooses the signatures that are judged. Jobs share it.
  std::shared_ptr<BuilderTrust> trust = std::make_shared<BuilderTrust>();
  // The runners that jobs have leased. Jobs share it.
  std::shared_ptr<KnownRunners> known_runners = std::make_shared<KnownRunners>();
  int max_builders = 64;  // 30 to 60 cores that compile keep a GPU busy
  int max_runners = 16;
  int queued = 4;        // trials in flight beyond those that the workers can have in hand
  int max_attempts = 3;  // for a trial, counting only attempts that reached a worker
  // For a reference, without which the job fails: a builder that fails each time is left alone
  // for long enough then that the job gets another one.
  int max_reference_attempts = 6;
  std::chrono::milliseconds connect{3'000};
  // Time that a call may take beyond the time limits of build and run: for waiting, loading,
  // sending.
  std::chrono::milliseconds build_slack{30'000};
  std::chrono::milliseconds measure_slack{90'000};
  std::chrono::milliseconds reference_slack{300'000};
  std::chrono::milliseconds idle_release{2'000};
  std::chrono::milliseconds first_backoff{1'000};
  std::chrono::milliseconds longest_backoff{15'000};
  // Set if builders, searches and the measured CPU share one machine: then no job builds or
  // searches while any job times a program on a CPU. Outlives the dispatcher. Null: builders,
  // searches and devices have machines of their own.
  ExclusivePhases* phases = nullptr;
  // Shows how many trials wait (scheduler/values/queue_figures.h). Outlives the dispatcher. Null:
  // nobody sees it.
  QueueFigures* queues = nullptr;
  // Tells the instants of trials. Outlives the dispatcher.
  Clock* clock = &Clock::Real();
  // Called with each record after its commit, in a thread of the dispatcher, which it must not hold
  // up. Null: nobody asks.
  std::function<void(const store::Record&)> traced = nullptr;
};

// Makes the binaries of candidates from their source, in place of the builders' compilers: code of
// the job's user. Programs that answers are compared with are built by builders as always.
struct OwnBuilds {
  // Calls at once, each in a thread of the dispatcher. 0: builders make the binaries.
  int at_once = 0;
  // The answer has a binary or an error, which fails the trial, as DeadlineExceeded does. Another
  // status comes after a stop, or has ended the job. Any thread calls it.
  std::function<StatusOr<v1::CallbackReply>(v1::BuildCall call, absl::Duration timeout,
                                            const std::stop_token& stop)>
      build = nullptr;
};

class Dispatcher final : public search::Measurer {
 public:
  struct Job {
    std::string id;
    v1::TuneOptions options;
    std::vector<DispatchTask> tasks;
    // Only runners that announce this target are used, so that all costs of a job are comparable.
    // "" stands for any target.
    std::string runner_target;
    bool on_cpu = false;  // the measured programs need the cores to themselves
    OwnBuilds own_builds = {};
  };

  // Sources and store outlive the dispatcher. `first_runner` is the lease that told what the device
  // is. `committed` is called after each commit, in a thread of the dispatcher.
  Dispatcher(Job job, const DispatchOptions& options, LeaseSource& builders, LeaseSource& runners,
             LeasedWorker first_runner, store::Store& store, std::function<void()> committed);
  // Stops, and waits for the work in hand. Results that were measured are committed.
  ~Dispatcher() override;

  // Returns the number of trials that the leased workers can have in hand, and a few more.
  int capacity() override;
  void Submit(search::Trial trial) override;
  // Cancelled after Stop. Returns FailedPrecondition and similar errors when the job can't go on: a
  // reference does not build or run, a builder refuses, or the store fails.
  StatusOr<std::optional<search::Outcome>> Next(double until_s) override;
  // Cancels the calls for the task's trials. Drops results unless they are being committed.
  std::vector<uint32_t> Abandon(int task) override;
  void Wake() override;
  // Returns corrections only of trials that Next has returned.
  std::vector<search::Correction> TakeCorrections() override;

  // Measures candidates that have a record again, each list on one runner, and adds the readings to
  // their records. Blocks. A list that no runner could measure stays as it is. No turn begins after
  // `until_s` (Clock::MonotonicSeconds); readings that were taken before it count. Returns the same
  // errors as Next.
  Status MeasureAgain(std::vector<Finalists> lists,
                      double until_s = std::numeric_limits<double>::infinity());

  void Stop();
  // Does the same, but lets runners finish the trials that they have in hand, and commits them.
  void Drain();
  // Waits until no worker is in use any more. Call after Stop or Drain.
  void Join();

  // Writes the readings of the elites so far, and takes no more of them.
  Status EndIdleReadings();

  BusyMeter::Reading busy() const;

  // Sentences for the user about how answers are checked. More sentences may come while the job
  // runs.
  std::vector<std::string> notices() const;

  // The reason why no trial can go on. Both flags are false if trials can go on.
  struct Waiting {
    bool for_builder = false;
    bool for_runner = false;
    std::string problem;  // the last complaint; may be ""
  };
  Waiting waiting() const;

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace kiln::scheduler
