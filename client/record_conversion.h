// Jobs and records of the store as messages of the wire, and back. Nothing is lost either way.
#pragma once

#include "proto/scheduler.pb.h"
#include "store/record.h"
#include "store/store.h"

namespace kiln::client {

v1::Record ToProto(const store::Record& record);
store::Record FromProto(const v1::Record& record);

// What a scheduler would answer for GetJob, less what only a running one knows (waiting, device):
// the status of a job as it stands in the store.
StatusOr<v1::JobStatus> JobStatusFromStore(store::Store& store, const store::JobRow& job,
                                           int64_t now_ms);

}  // namespace kiln::client
