// Jobs, tasks and rounds of the store as messages of the wire: the one answer to "how does this job
// stand" that the scheduler and a client that reads a database itself both give. What only a
// running scheduler knows (what the job waits for, its device, the last minute) it adds itself.
#pragma once

#include "base/status.h"
#include "proto/scheduler.pb.h"
#include "store/store.h"

namespace kiln::store {

// The job with its tasks, counts and best records. `spec` is what the row's bytes say, parsed by
// the caller, who knows what to do about damaged ones; name, user and priority are the row's.
// `now_ms`: for the elapsed time of a job that runs. Reads the store once per task.
StatusOr<v1::JobStatus> JobStatusMessage(Store& store, const JobRow& job, v1::JobSpec spec,
                                         int64_t now_ms);

v1::Round RoundMessage(const RoundRow& row);

}  // namespace kiln::store
