// Chooses the tasks of a job for a table that has no room for all. Pure functions.
#pragma once

#include <vector>

#include "proto/scheduler.pb.h"

namespace kiln::client {

// Returns at most `rows` tasks, ascending; all tasks if they fit. The variants of a group stay
// together. The current task comes first, then in turns the task with the largest part of the
// objective (weight times latency) and the task with the largest speed-up, then tasks without a
// result.
std::vector<int> TaskWindow(const v1::JobStatus& job, int rows);

}  // namespace kiln::client
