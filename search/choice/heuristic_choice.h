// The heuristic choice: a schedule that is chosen without measuring, and its predicted time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/calibration.h"
#include "search/policies/policy.h"
#include "search/space/task.h"

namespace kiln::search {

// The default seed. A job measures first the schedule that a compilation without records takes,
// because both use this seed.
inline constexpr uint64_t kHeuristicSeed = 1;

struct HeuristicChoice {
  std::string steps;       // a JSON array
  std::string origin;      // "sketch 1, by rule": see search/policies/policy.h
  double predicted_s = 0;  // time by the analytic model; 0 if there was nothing to choose
  int64_t looked_at = 0;   // number of schedules that were lowered and ranked
  double cpu_s = 0;        // the calling thread's time for the choice
};

// Returns the first proposal of the policy `heuristic` (search/policies/heuristic_policy.h): it
// replays and lowers. `calibration` has the analytic model's constants for the task's device. The
// same seed gives the same schedule. Cost: tens of milliseconds on the calling thread.
StatusOr<HeuristicChoice> ChooseHeuristic(const Task& task, const device::Calibration& calibration,
                                          uint64_t seed);

// Chooses for a device of which only the target and the cores are known, with the seed above:
// returns the schedule that a compilation without records takes, and those that are predicted to be
// next best, at most `n` in all. Their origins begin with kHeuristicOrigin, and their scores are
// minus the predicted seconds. Empty if no schedule can be chosen without measuring. Cancelled when
// the task is stopped.
StatusOr<std::vector<Candidate>> HeuristicSchedules(const Task& task, int n);

}  // namespace kiln::search
