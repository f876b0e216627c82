// Records of the store as messages of the wire, and back, for all who hand records on: the
// scheduler that answers from its store, the client that reads a database itself.
//
// It is a folder of its own beside the store since the store itself knows no messages, and proto/,
// which all services see, no store: whoever may include both may include this.
#pragma once

#include "proto/scheduler.pb.h"
#include "store/record.h"
#include "store/store.h"

namespace kiln::store {

// Nothing is lost either way, but for `times` that are no TrialTimes: those are not known then.
RecordFilter FilterOf(const v1::ListRecordsRequest& message);
AutotvmFilter FilterOf(const v1::ListAutotvmRecordsRequest& message);
WorkloadRef WorkloadOf(const v1::BestRequest& message);

v1::Record RecordMessage(const Record& record);
Record RecordOf(const v1::Record& message);

}  // namespace kiln::store
