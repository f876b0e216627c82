// A schedule that is chosen without measuring, and what is known of it.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "device/calibration.h"
#include "search/space/task.h"

namespace kiln::search {

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

}  // namespace kiln::search
