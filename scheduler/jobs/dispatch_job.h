// Makes the description of a job that the dispatcher takes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduler/dispatch/dispatch.h"
#include "scheduler/jobs/device_lease.h"
#include "scheduler/jobs/job_history.h"
#include "scheduler/jobs/warm_start.h"
#include "scheduler/values/job_spec.h"
#include "store/store.h"

namespace kiln::scheduler {

// `rows` are the job's tasks in the store. The elites of `history` move to the dispatcher.
Dispatcher::Job DispatchJobOf(const std::string& job_id, const CheckedJob& job,
                              const LeasedDevice& device, JobHistory history,
                              const WarmStart& start,
                              std::vector<std::optional<SampledReference>> samples,
                              const std::vector<store::TaskRow>& rows);

}  // namespace kiln::scheduler
