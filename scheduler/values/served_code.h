// The parts of a job's search that are code of the user (ServedCode). Pure functions.
#pragma once

#include <string>

#include "base/status.h"
#include "proto/scheduler.pb.h"

namespace kiln::scheduler {

inline bool HasServedModel(const v1::ServedCode& served) {
  return served.model_reads_rows() || served.model_reads_steps();
}

// A call of a served objective grows with the square of the tasks: 32 MB for so many.
inline constexpr int kMostTasksOfServedObjective = 2'000;

// Checks what a job says about its served code, and fills in the time limit. Clears the message if
// it serves nothing. The job's policy is checked already. InvalidArgument says what was found and
// what was expected.
Status CheckServed(v1::JobSpec& spec);

// Names the served parts for people: "cost model and sketch rules".
std::string ServedParts(const v1::ServedCode& served);

}  // namespace kiln::scheduler
