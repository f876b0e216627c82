// The status of a job as the calls of the service tell it.
#pragma once

#include "base/status.h"
#include "scheduler/jobs/jobs.h"

namespace kiln::scheduler {

// Returns Jobs::StatusOf with the id of the request alone: the trace that a job keeps behind it
// (request_trace.h) is the scheduler's own matter.
StatusOr<v1::JobStatus> ToldStatus(const Jobs& jobs, const store::JobRow& job);

}  // namespace kiln::scheduler
