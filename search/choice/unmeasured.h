// A schedule that is chosen without measuring, and what is known of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/calibration.h"
#include "search/policies/policy.h"
#include "search/space/task.h"

namespace kiln::search {

// The seed of whoever does not ask for another one: so a job measures first what a compilation
// without records takes.
inline constexpr uint64_t kUnmeasuredSeed = 1;

struct UnmeasuredChoice {
  std::string steps;       // a JSON array
  std::string origin;      // "sketch 1, by rule": see search/policies/policy.h
  double predicted_s = 0;  // by the analytic model; 0: there was nothing to choose
  int64_t looked_at = 0;   // schedules that were lowered and ranked
  double cpu_s = 0;        // of the calling thread, that choosing took
};

// What the policy `heuristic` proposes first (search/policies/heuristic_policy.h): it replays and
// lowers. `calibration`: of the analytic model for the task's device. The same seed gives the same
// one. Cost: tens of milliseconds on the calling thread.
StatusOr<UnmeasuredChoice> ChooseWithoutMeasuring(const Task& task,
                                                  const device::Calibration& calibration,
                                                  uint64_t seed);

// The same for a device that nothing is known of but its target and its cores, with the seed above:
// what a compilation without records takes, and those that are predicted to be next best, `n` at
// most. Their origins begin with kHeuristicOrigin, their scores are minus the predicted seconds.
// None: no schedule can be chosen so. Cancelled when the task is stopped.
StatusOr<std::vector<Candidate>> SchedulesWithoutMeasuring(const Task& task, int n);

}  // namespace kiln::search
