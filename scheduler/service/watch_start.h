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
// id, now and in future. Numbers are given out in order, so records of that many trials come first,
// but for trials in flight and trials without a record. Cost: reads ids of the job, as many as
// `from_trial` at most, from an index. At most kMostInFlight records of earlier trials, and one for
// each trial without a record, have a larger id, so a watcher reads no more in vain.
StatusOr<int64_t> IdBeforeTrial(store::Store& store, const std::string& job_id,
                                uint32_t from_trial);

}  // namespace kiln::scheduler
