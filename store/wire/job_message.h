// Converts jobs, tasks and rounds of the store into messages of the wire. The scheduler and a
// client that reads a database itself describe the state of a job with the same code. The scheduler
// adds what only a running scheduler knows: what the job waits for, its device, the last minute.
#pragma once

#include "base/status.h"
#include "proto/scheduler.pb.h"
#include "store/store.h"

namespace kiln::store {

// Returns the job with its tasks, counts and best records. `spec` is parsed from the row's bytes by
// the caller, which decides what to do about damaged bytes; name, user and priority are taken from
// the row. `now_ms` gives the elapsed time of a running job. Reads the store once per task.
StatusOr<v1::JobStatus> JobStatusMessage(Store& store, const JobRow& job, v1::JobSpec spec,
                                         int64_t now_ms);

// Returns what the job is and what its tasks compute: without counts, costs and the elapsed time.
// Reads the rows of its tasks alone, however many records it has.
StatusOr<v1::JobStatus> JobWithoutResultsMessage(Store& store, const JobRow& job, v1::JobSpec spec);

v1::Round RoundMessage(const RoundRow& row);

}  // namespace kiln::store
