// The reason why a job's search ended, and the job's remark on it. Pure functions.
#pragma once

#include <string>

#include "base/status.h"
#include "proto/scheduler.pb.h"
#include "search/tuning/task_scheduler.h"
#include "store/store.h"

namespace kiln::scheduler {

// Returns kNone for a search that goes on when other jobs have ended.
store::JobEnding StoredEnding(search::Ending ending);

// Returns the remark on a job that is done: "", or why it took fewer trials than asked.
// FailedPrecondition if none of its trials gave a correct program.
StatusOr<std::string> RemarkOn(store::JobEnding ending, const v1::TuneOptions& options,
                               const store::TrialCounts& counts);

}  // namespace kiln::scheduler
