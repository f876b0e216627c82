// The place in the records of a job at which a watcher begins.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "store/store.h"

namespace kiln::scheduler {

// More trials of a job are never in flight at once: a dispatcher holds some for each builder and
// runner that it may lease (DispatchOptions), a hundred with the usual limits.
inline constexpr uint32_t kMostInFlight = 512;

// Returns an id: all records of the job whose trial is `from_trial` or a later one have a larger
// id, now and in future. Numbers are given out in order. When a trial begins, one of any
// kMostInFlight earlier trials has its record, so no later trial needs to be looked at. Cost: reads
// kMostInFlight entries of an index at most. At most kMostInFlight records of earlier trials have a
// larger id, so a watcher reads no more in vain.
StatusOr<int64_t> IdBeforeTrial(store::Store& store, const std::string& job_id,
                                uint32_t from_trial);

}  // namespace kiln::scheduler
