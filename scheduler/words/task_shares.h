// The shares of tasks in the total latency of their job. Pure functions.
#pragma once

#include <vector>

#include "proto/scheduler.pb.h"

namespace kiln {

// Returns the share of each task, 0 to 1; together they are 1. A group of variants counts by its
// fastest one, so the others have 0. All are 0 while a group has no result, and if the objective is
// no sum of latencies.
std::vector<double> SharesOf(const v1::JobStatus& job);

}  // namespace kiln
