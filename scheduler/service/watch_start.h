// The place in the records of a job at which a watcher begins.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "store/store.h"

namespace kiln::scheduler {

// A watcher that comes back lacks at most so many trials, as a rule.
inline constexpr uint32_t kFewTrials = 1'000;

// Returns an id: all records of the job whose trial is `from_trial` or a later one have a larger
// id, now and in future. The job has got `trials_done` records. Cost: reads the records from that
// trial on if they are at most kFewTrials, or the ids of the job's records if there is none;
// otherwise the answer is 0, and costs nothing.
StatusOr<int64_t> IdBeforeTrial(store::Store& store, const std::string& job_id, uint32_t from_trial,
                                uint32_t trials_done);

}  // namespace kiln::scheduler
