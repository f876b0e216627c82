// The order in which a scheduler takes the jobs that wait. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "proto/scheduler.pb.h"

namespace kiln {

// A job waits for a process of its user, and not for its turn.
bool WaitsForProcess(const v1::JobStatus& job);
// A job waits for the results of other jobs that tune its tasks, and not for its turn.
bool WaitsForResults(const v1::JobStatus& job);
// Returns "job 3f2a tunes matmul 64,64,64: its results are taken" for a task that another job tunes
// while this one runs; "" for other tasks.
std::string TunedByText(const v1::JobStatus& job, int task);
// A job holds up no others: it is in the queue, and can be taken.
bool WaitsForTurn(const v1::JobStatus& job);

// Returns the jobs of `all` that a scheduler takes before `job` if all users have had the same, in
// their order: those of higher priority, and the older ones of its priority. `all` is the answer to
// ListJobs, the newest job first. The pointers are into `all`.
std::vector<const v1::JobStatus*> JobsBefore(const v1::JobStatus& job,
                                             const std::vector<v1::JobStatus>& all);

// Returns the jobs that a scheduler works on now; a running job that waits for a worker is one.
std::vector<const v1::JobStatus*> RunningJobs(const std::vector<v1::JobStatus>& all);

}  // namespace kiln
