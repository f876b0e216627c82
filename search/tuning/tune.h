// The tuning loop of one job: chooses a task, asks its policy for candidates, keeps the measurer
// busy, and feeds results back.
//
//   task scheduler -> [search thread: Observe, Propose] -> ready -> Measurer -> results
//          ^                        ^                                              |
//          +------------------------+----------------------------------------------+
//
// Policies live in threads of their own, so that candidates of the next rounds are found, and
// models trained, while those of the last rounds are built and measured. A round is asked for when
// so few trials are left that they would be done before the search is. Where one search does not
// keep the measurer busy, candidates of several tasks are found at once. In lock step a round is
// asked for when no trial is left: every search knows all results, and the same seed and costs give
// the same run, however many trials are measured at once.
//
// The loop knows neither RPC nor store: both are behind Measurer.
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
#include "search/tuning/other_searches.h"
#include "search/tuning/search_turns.h"
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
  double cost_s = 0;  // mean; set if valid
  // The time of one run of the unscheduled loops on the device. None: not known.
  std::optional<double> reference_s = {};
  // The time of the build, if the device had waited for it. None: it is not known, or the program
  // waited for the device.
  std::optional<double> awaited_build_s = {};
};

// The new cost of a trial whose cost differs from its outcome, by the readings so far.
struct Correction {
  int task = 0;
  uint32_t trial = 0;
  uint64_t hash = 0;  // hash of the candidate
  bool valid = false;
  double cost_s = 0;  // set if valid
};

// Builds, checks and times trials. The thread that runs Tune calls all functions but Wake.
class Measurer {
 public:
  virtual ~Measurer() = default;
  // Returns how many trials the measurer can use at once. The number may change while it works.
  virtual int capacity() = 0;
  // Takes a trial. Does not block.
  virtual void Submit(Trial trial) = 0;
  // Returns the next finished trial, in any order; it is safely recorded by then. Blocks until a
  // trial is finished, until Wake, or until the time `until_s` (Clock::MonotonicSeconds); in the
  // last two cases returns nothing. An error ends the job.
  virtual StatusOr<std::optional<Outcome>> Next(double until_s) = 0;
  // Ends the task's trials that are in hand. Returns the numbers of those that are not recorded and
  // never will be: other trials may get these numbers. The outcomes of the rest still come.
  virtual std::vector<uint32_t> Abandon(int task) {
    (void)task;
    return {};
  }
  // Returns corrections of trials that Next has returned, since the last call.
  virtual std::vector<Correction> TakeCorrections() { return {}; }
  // Ends the call of Next that waits, or else the next call. Any thread.
  virtual void Wake() = 0;
};

struct TuneTask {
  // Not owned; used by one search thread at a time until Tune returns. Policies of different tasks
  // are used at once if TuneOptions.searches allows it.
  Policy* policy = nullptr;
  ScheduledTask facts = {};
  // Costs of earlier runs of the job, in the order of their trials; none: failed. The policy has
  // observed them already.
  std::vector<std::optional<double>> earlier_costs_s = {};
};

// A round at its begin.
struct ProposedRound {
  int task = 0;
  std::span<const Candidate> candidates;  // empty: the task is exhausted
  const RoundReport& report;
  double search_s = 0;  // with training
  int in_hand = 0;      // trials that the measurer had left when the round came
};

// A round whose trials all have results, also a round that proposed no candidates.
struct MeasuredRound {
  int task = 0;
  uint32_t trials = 0;  // results of all tasks so far, with earlier runs
  double search_s = 0;
  const RoundReport& report;
  const TaskScheduler& tasks;
};

struct TuneOptions {
  uint32_t trials = 64;      // number for the whole job, with earlier runs
  uint32_t first_trial = 0;  // next trial number to give out after those of `missing`
  std::vector<uint32_t> missing =
      {};  // numbers below first_trial that have no result: given out first
  TaskSchedulerOptions schedule = {};
  bool lock_step = false;
  // Tasks whose candidates may be found at the same time. In lock step it is one.
  int searches = 1;
  // The searches that may tune some of the tasks meanwhile. Null: there are none. Outlives Tune.
  OtherSearches* others = nullptr;
  // At this time (Clock::MonotonicSeconds) the search ends, whatever is in hand.
  double until_s = std::numeric_limits<double>::infinity();
  // Phases of the machine that the searches work in: programs of this job or of others are timed on
  // its cores. Null: none are. Outlives Tune.
  ExclusivePhases* phases = nullptr;
  // Each round takes one of these turns. Null: there is no limit. Outlives Tune.
  SearchTurns* turns = nullptr;
  // These are called for tables and logs, in the thread that runs Tune; each may be null. on_result
  // is called once before the first trial and after each result.
  std::function<void(const TaskScheduler&)> on_result = nullptr;
  std::function<void(const ProposedRound&)> on_proposed = nullptr;
  // An error ends the job.
  std::function<Status(const MeasuredRound&)> on_measured = nullptr;
};

// Runs until the trials or the time are used up, every task is exhausted or stopped, or a target is
// reached, and returns which of these happened; or until only tasks are left that other searches
// tune. When `stop` becomes true, waits for the trials in
// flight and returns Cancelled. Abandons trials in hand whose results are of no use any more: those
// of a stopped task, or of the whole job.
StatusOr<Ending> Tune(std::span<const TuneTask> tasks, const TuneOptions& options,
                      Measurer& measurer, const std::atomic<bool>& stop);

}  // namespace kiln::search
