// Tells which tasks several jobs ask for alike, so that one search does for all of them.
//
// Two jobs ask for a task alike if the results of either are what the other one looks for: the
// same computation, target and device, programs that are measured, checked and re-measured in the
// same way, and the same search: policy, its parameters, template, kernel, cost model and seed. A
// job may ask for any number of trials, in any time, with any weights.
//
// Pure functions of immutable values; TunedTasks is not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "proto/scheduler.pb.h"

namespace kiln::scheduler {

// A key for each task of a job. Tasks that are asked for alike have equal keys. "" is the key of a
// task that its job tunes by itself in any case.
using TaskKeys = std::vector<std::string>;

// `spec` is canonical (CheckJobSpec). All keys are "" for a job that wants no results of others
// (no_warm_start), has parts that a process of its user serves, calibrates, or has faults built in.
// Cost: a digest of each task.
TaskKeys TaskKeysOf(const v1::JobSpec& spec);

// The tasks that some jobs tune.
class TunedTasks {
 public:
  void Add(const std::string& job_id, int32_t priority, const TaskKeys& keys);

  // Returns for each key the job that tunes it: of those of at least this priority the most urgent
  // one, then the one that was added first. "": there is none.
  std::vector<std::string> TunersOf(const TaskKeys& keys, int32_t priority) const;

 private:
  struct Tuner {
    std::string job_id;
    int32_t priority = 0;
  };
  std::map<std::string, Tuner, std::less<>> tuners_;  // key: of a task
};

// Returns whether a job with these tuners has nothing to do by itself.
bool WaitsForAll(const std::vector<std::string>& tuners);

// Returns the phase of such a job: "waits for the results of job 3f2a, ...".
std::string WaitPhase(const std::vector<std::string>& tuners);

}  // namespace kiln::scheduler
