// Trials to workers: builds ahead on all builders it can lease, measures on all runners, commits
// each result to the store, and only then hands the outcome to the search.
//
//   Submit -> [build queue] -> builder lanes -> [run queue] -> runner lanes -> commit -> Next
//
// An infrastructure failure (a call that failed, a lease that was lost) sends the trial to another
// worker under the same number; after max_attempts it is recorded as UNKNOWN_ERROR. A worker that
// could not be reached at all does not count against the trial. Without workers it waits for ever.
//
// Where the reference of a task takes longer than the job allows (reference_limit_s), it is given
// up once, and one that computes a sample of the outputs takes its place (task_sample.h).
//
// Finalists go the same way, all of a task together to one runner, which measures them in turns
// (races.h). Where the job uses idle time, a runner that has no trial reads the elites meanwhile
// (elites.h); what that says goes to the store once a second, a failure at once.
//
// Submit, Next, Abandon, TakeCorrections and MeasureAgain belong to one thread; the rest may be
// called by any. Cost: one commit for all results that came since the last one.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/secret.h"
#include "device/exclusive_phases.h"
#include "proto/scheduler.pb.h"
#include "rpc/lease_source.h"
#include "scheduler/busy_meter.h"
#include "scheduler/elites.h"
#include "scheduler/races.h"
#include "scheduler/task_sample.h"
#include "search/tuning/tune.h"
#include "store/store.h"

namespace kiln::scheduler {

// What all trials of one task have in common.
struct DispatchTask {
  std::string workload_id, workload_key;
  std::string dag;
  std::string target;  // completed
  HardwareRow hardware{};
  double flop_count = 0;
  std::optional<double> best_cost_s = {};       // of earlier runs and jobs
  std::optional<double> reference_cost_s = {};  // none: not measured yet
  std::string description = {};                 // for people
  double plain_s = 0;                           // what the unscheduled loops take, about
  // What answers are compared at; none: at all elements of the outputs.
  std::optional<TaskSample> sample = {};
  int group = 0;  // tasks that are alternatives of each other have one
  // Of earlier runs of the job.
  int trials = 0;
  std::vector<Elite> elites = {};
};

struct DispatchOptions {
  Secret secret;          // of the farm, for its workers
  int max_builders = 64;  // a GPU is kept busy by 30 to 60 cores that compile
  int max_runners = 16;
  int queued = 4;        // trials in flight beyond those that a worker can have in hand
  int max_attempts = 3;  // of a trial that reached a worker
  std::chrono::milliseconds connect{3'000};
  // What a call may take beyond the time limits of build and run: waiting, loading, sending.
  std::chrono::milliseconds build_slack{30'000};
  std::chrono::milliseconds measure_slack{90'000};
  std::chrono::milliseconds reference_slack{300'000};
  std::chrono::milliseconds idle_release{2'000};
  std::chrono::milliseconds first_backoff{1'000};
  std::chrono::milliseconds longest_backoff{15'000};
  // Where builders, searches and the CPU that is measured are one machine's: nothing is built or
  // searched while a program is timed on a CPU, by any job. Outlives the dispatcher. Null: each is
  // on a machine of its own.
  ExclusivePhases* phases = nullptr;
};

class Dispatcher final : public search::Measurer {
 public:
  struct Job {
    std::string id;
    v1::TuneOptions options;
    std::vector<DispatchTask> tasks;
    // Only runners that announce this target are used; "" = all. Costs of one job stay comparable.
    std::string runner_target;
    bool on_cpu = false;  // what is measured needs the cores to itself
  };

  // Sources and store outlive this. `first_runner`: the lease that told what the device is.
  // `committed` is called after each commit, in a thread of ours.
  Dispatcher(Job job, const DispatchOptions& options, LeaseSource& builders, LeaseSource& runners,
             LeasedWorker first_runner, store::Store& store, std::function<void()> committed);
  // Stops, and waits for the lanes; what was measured is committed.
  ~Dispatcher() override;

  // As many as the leased workers can have in hand, and a few more.
  int capacity() override;
  void Submit(search::Trial trial) override;
  // Cancelled after Stop; FailedPrecondition and the like when the job can't go on: a reference
  // that does not build or run, a builder that refuses, a store that fails.
  StatusOr<std::optional<search::Outcome>> Next(double until_s) override;
  // Calls for them are cancelled, what was measured and is not being committed is thrown away.
  std::vector<uint32_t> Abandon(int task) override;
  void Wake() override;
  // Of trials that Next has returned.
  std::vector<search::Correction> TakeCorrections() override;

  // Measures candidates that have a record again, each list by one runner, and puts what comes of
  // it into their records. Blocks. A list that no runner could measure stays as it is. From
  // `until_s` on (Clock::MonotonicSeconds) no turn begins, and what was read until then counts.
  // Errors as Next.
  Status MeasureAgain(std::vector<Finalists> lists,
                      double until_s = std::numeric_limits<double>::infinity());

  void Stop();

  // Writes what the elites' readings say, and takes no more of them.
  Status EndIdleReadings();

  BusyMeter::Reading busy() const;

  // What the user should know of how answers are checked, a sentence each; more may come.
  std::vector<std::string> notices() const;

  // What stands in the way when no trial can go on; "" when nothing does.
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
