// Which tasks of a job stand in a table that has no room for all of them. Pure functions.
#pragma once

#include <vector>

#include "proto/scheduler.pb.h"

namespace kiln::client {

// At most `rows` tasks, ascending; all where they fit. The variants of a group stay together. First
// the work in hand, then in turns the one that takes most of the objective (weight times latency)
// and the one with the largest speed-up, then those without a result.
std::vector<int> TaskWindow(const v1::JobStatus& job, int rows);

}  // namespace kiln::client
