// The tuning loop of one job: chooses a task, asks its policy for candidates, keeps the measurer
// busy, feeds results back.
//
//   task scheduler -> [search thread: Observe, Propose] -> ready -> Measurer -> results
//          ^                        ^                                              |
//          +------------------------+----------------------------------------------+
//
// Policies live in a thread of their own, so that candidates of the next round are found, and
// models trained, while those of the last one are built and measured. A round is asked for when so
// few trials are left that they would be over before the search is. In lock step it is asked for
// when none is left: every search knows all results, and the same seed and costs give the same run,
// however many trials are measured at once.
//
// Knows neither RPC nor store: both are behind Measurer.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "device/exclusive_phases.h"
#include "search/policies/policy.h"
#include "search/tuning/task_scheduler.h"

namespace kiln::search {

struct Trial {
  int task = 0;         // index into the job's tasks
  uint32_t number = 0;  // within the job
  Candidate candidate;
};

struct Outcome {
  Trial trial;
  bool valid = false;
  double cost_s = 0;  // mean, when valid
  // The time of one run of the unscheduled loops on the device; none: not known.
  std::optional<double> reference_s = {};
};

// A trial that costs something else than its outcome said, as is known by now.
struct Correction {
  int task = 0;
  uint32_t trial = 0;
  uint64_t hash = 0;  // of its candidate
  bool valid = false;
  double cost_s = 0;  // when valid
};

// Builds, checks and times trials. All but Wake are called by the thread that runs Tune.
class Measurer {
 public:
  virtual ~Measurer() = default;
  // How many trials it usefully holds at once; may change while it works.
  virtual int capacity() = 0;
  // Takes a trial. Does not block.
  virtual void Submit(Trial trial) = 0;
  // The next finished trial, in any order; it is safely recorded when it is returned. Blocks, until
  // Wake or the time `until_s` (Clock::MonotonicSeconds): then nothing. An error ends the job.
  virtual StatusOr<std::optional<Outcome>> Next(double until_s) = 0;
  // Ends the trials of the task that are in hand. Returns the numbers of those that are not
  // recorded and never will be: they may be given to others. The outcomes of the rest come as ever.
  virtual std::vector<uint32_t> Abandon(int task) {
    (void)task;
    return {};
  }
  // What has become known since the last call of trials that Next has returned.
  virtual std::vector<Correction> TakeCorrections() { return {}; }
  // Ends the Next that waits, or the one that comes. Any thread.
  virtual void Wake() = 0;
};

struct TuneTask {
  Policy* policy = nullptr;  // not owned; used by the search thread until Tune returns
  ScheduledTask facts = {};
  // Of earlier runs of the job, in the order of their trials; none: failed. The policy has observed
  // them.
  std::vector<std::optional<double>> earlier_costs_s = {};
};

// A round as it begins.
struct ProposedRound {
  int task = 0;
  std::span<const Candidate> candidates;  // none: the task is exhausted
  const RoundReport& report;
  double search_s = 0;  // training included
  int in_hand = 0;      // trials that the measurer had left when the round came
};

// A round whose trials all have results; one that proposed none has them at once.
struct MeasuredRound {
  int task = 0;
  uint32_t trials = 0;  // results of all tasks so far, earlier runs included
  double search_s = 0;
  const RoundReport& report;
  const TaskScheduler& tasks;
};

struct TuneOptions {
  uint32_t trials = 64;      // of the whole job, earlier runs included
  uint32_t first_trial = 0;  // next trial number to give out, where no number of `missing` is left
  std::vector<uint32_t> missing =
      {};  // numbers below first_trial that have no result: given out first
  TaskSchedulerOptions schedule = {};
  bool lock_step = false;
  // Clock::MonotonicSeconds: then it ends, whatever is in hand.
  double until_s = std::numeric_limits<double>::infinity();
  // Where what is measured runs on the cores that search; null: elsewhere. Outlives Tune.
  ExclusivePhases* phases = nullptr;
  // For tables and logs, in the thread that runs Tune; null: nobody looks. on_result: once before
  // the first trial and after each result.
  std::function<void(const TaskScheduler&)> on_result = nullptr;
  std::function<void(const ProposedRound&)> on_proposed = nullptr;
  // An error ends the job.
  std::function<Status(const MeasuredRound&)> on_measured = nullptr;
};

// Runs until the trials or the time are used up, every task is exhausted or stopped, or a target is
// reached, and says which; or until `stop` becomes true (then it waits for the trials in flight and
// returns Cancelled). What is in hand when more results are of no use is abandoned, of a task that
// is stopped as well as of the whole job.
StatusOr<Ending> Tune(std::span<const TuneTask> tasks, const TuneOptions& options,
                      Measurer& measurer, const std::atomic<bool>& stop);

}  // namespace kiln::search
