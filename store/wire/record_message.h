// Converts records of the store into messages of the wire, and back. The scheduler that answers
// from its store and the client that reads a database itself both use it.
//
// The folder is separate from the store since the store knows no messages, and proto/, which all
// services see, knows no store. Code that may include both may include this header.
#pragma once

#include "proto/scheduler.pb.h"
#include "store/record.h"
#include "store/store.h"

namespace kiln::store {

RecordFilter FilterOf(const v1::ListRecordsRequest& message);
AutotvmFilter FilterOf(const v1::ListAutotvmRecordsRequest& message);
WorkloadRef WorkloadOf(const v1::BestRequest& message);

// Nothing is lost either way, except for Record::times that are no times (kept_times.h): these
// become unknown. The trace id of a record follows from its job and trial.
v1::Record RecordMessage(const Record& record);
Record RecordOf(const v1::Record& message);

// Returns the same as RankOf(RecordOf(message)), without the texts.
Rank RankOf(const v1::Record& message);

}  // namespace kiln::store
