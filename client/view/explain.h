// Explains why the search tried its candidates, in lines for people (--explain), and writes the
// latency log (--log-file). Pure functions.
#pragma once

#include <string>
#include <vector>

#include "proto/scheduler.pb.h"

namespace kiln::client {

// Returns a line such as
// "trial   17  1.234 ms  score 0.93  sketch 1, tile sizes of conv2d.rc, 2 changes from trial 9".
std::string ExplainTrial(const v1::Record& record);

// Returns "round 3: task 0 (matmul 512,512,512), search 1.2 s" and the indented report.
std::vector<std::string> ExplainRound(const v1::Round& round, const v1::JobStatus& job);

// Returns a line of the latency log, tab-separated, with its end of line:
//   ElapsedTime(s) 12 EstimatedLatency(ms) 4.567 Trials 128 Task 0 Best(ms) 1.234 - ...
// N/A stands for a task without a result. The latency is the sum of weight * best.
std::string LatencyLogLine(const v1::Round& round);

}  // namespace kiln::client
