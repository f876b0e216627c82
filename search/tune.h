// The tuning loop of one job: chooses a task, asks its policy for candidates, keeps the measurer
// busy, feeds results back.
//
// Knows neither RPC nor store: both are behind Measurer. Search overlaps with measuring: new
// proposals are made while earlier trials are in flight.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "search/policy.h"

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
};

// Builds, checks and times trials. Called by the thread that runs Tune.
class Measurer {
 public:
  virtual ~Measurer() = default;
  // How many trials it usefully holds at once; may change while it works.
  virtual int capacity() = 0;
  // Takes a trial. Does not block.
  virtual void Submit(Trial trial) = 0;
  // The next finished trial, in any order; it is safely recorded when it is returned. Blocks. An
  // error ends the job.
  virtual StatusOr<Outcome> Next() = 0;
};

struct TaskProgress {
  Policy* policy = nullptr;  // not owned
  double weight = 1;
  uint32_t trials = 0;      // finished and in flight, earlier runs of the job included
  double best_cost_s = 0;   // 0: none
  uint32_t best_trial = 0;  // `trials` when the best was found
  bool exhausted = false;
};

struct TuneOptions {
  uint32_t trials = 64;      // of the whole job, earlier runs included
  uint32_t first_trial = 0;  // next trial number to give out, where no number of `missing` is left
  std::vector<uint32_t> missing =
      {};                       // numbers below first_trial that have no result: given out first
  uint32_t early_stopping = 0;  // stop a task after this many trials without improvement; 0: never
  uint32_t proposals_per_call = 16;
};

// Runs until the trials are used up, every task is exhausted or stopped, or `stop` becomes true
// (then it waits for the trials in flight and returns Cancelled). Tasks take turns: the one with
// the fewest trials is next (ties: the first).
Status Tune(std::span<TaskProgress> tasks, const TuneOptions& options, Measurer& measurer,
            const std::atomic<bool>& stop);

}  // namespace kiln::search
