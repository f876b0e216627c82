// Tells which tasks several jobs ask for alike, so that one search does for all of them.
//
// Two jobs ask for a task alike if the results of either are what the other one looks for: the
// same computation, target and device, programs that are measured, checked and re-measured in the
// same way, and the same search: policy, its parameters, template, kernel, cost model and seed. A
// job may ask for any number of trials, in any time, with any weights.
//
// Jobs have an order: by priority, then by the turns in which they began. Of the jobs with the same
// task the first one tunes it, and the others wait for its results. So a job waits only for jobs
// that come before it, and jobs never wait for each other.
//
// Pure functions of immutable values; TunedTasks is not thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
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

// The turn of a job that has not begun. Such a job comes after all that have.
inline constexpr uint64_t kNoTurn = std::numeric_limits<uint64_t>::max();

// The place of a job in the order of jobs.
struct JobPlace {
  int32_t priority = 0;
  uint64_t turn = kNoTurn;  // no two jobs that have begun have the same
  // The device that the job measures on. "": it is not known yet.
  std::string device = {};
};

// Returns whether a job comes before another one.
bool IsBefore(const JobPlace& a, const JobPlace& b);

// The tasks of jobs that have begun.
class TunedTasks {
 public:
  void Add(const std::string& job_id, const JobPlace& place, const TaskKeys& keys);

  // Returns for each key the job whose results a job at this place waits for: the first one before
  // it that has the task and does not measure on another device. "": there is none.
  std::vector<std::string> TunersOf(const TaskKeys& keys, const JobPlace& place) const;

 private:
  struct Tuner {
    std::string job_id;
    JobPlace place;
  };
  std::map<std::string, std::vector<Tuner>, std::less<>> tuners_;  // key: of a task
};

// Returns the tasks that keep a job in the queue while other jobs tune them: all tasks, or none if
// the job tunes one by itself in any case.
TaskKeys AwaitedBeforeBegin(const TaskKeys& keys);

// Returns whether a job that awaits these tasks has nothing to do by itself: it awaits some, and
// each has a tuner. The tuners of tasks with the key "" do not matter.
bool WaitsForAll(const TaskKeys& awaited, const std::vector<std::string>& tuners);

// Returns the phase of such a job: "waits for the results of job 3f2a, ...". A tuner may be "".
std::string WaitPhase(const std::vector<std::string>& tuners);

}  // namespace kiln::scheduler
