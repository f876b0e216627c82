// An objective that the user's process serves.
#pragma once

#include "scheduler/callbacks/served_search.h"
#include "search/tuning/objective.h"

namespace kiln::scheduler {

// Asks the process once for each list of latencies: for the value there, for the values where one
// latency is shorter by a thousandth, and for the value where all are. A slope is the difference
// quotient. If no single latency counts, as where several are the largest, all latencies that are
// asked about together have the slope of their common change. If target_s is above 0, the objective
// need not be smaller than target_s. The functions belong to one thread.
search::Objective MakeServedObjective(ServedSearch& search, double target_s);

}  // namespace kiln::scheduler
