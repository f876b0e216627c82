// The start of a job's search: a policy for each task, which has observed the known results, and
// the options of the tuning loop.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "scheduler/callbacks/served_search.h"
#include "scheduler/jobs/device_lease.h"
#include "scheduler/jobs/job_history.h"
#include "scheduler/jobs/warm_start.h"
#include "scheduler/values/job_spec.h"
#include "scheduler/values/sampled_reference.h"
#include "search/policies/kept_allowance.h"
#include "search/policies/models.h"
#include "search/tuning/tune.h"
#include "store/store.h"

namespace kiln::scheduler {

struct JobSearch {
  std::vector<std::unique_ptr<search::Policy>> policies;
  std::vector<search::TuneTask> tasks;  // refer to the policies
  search::TuneOptions options;          // deadlines, phases and observers are not set
};

// Returns a sample of the outputs for each task whose unscheduled loops surely take longer than a
// reference may. Tasks without a sample have all elements compared.
std::vector<std::optional<SampledReference>> SamplesOf(const CheckedJob& job);

// The device's tasks outlive the result. `rows` are the job's tasks in the store. Chooses the
// schedules that are measured first, which takes tens of milliseconds of a core for each task.
// Returns errors of MakePolicy, and Cancelled when the tasks are stopped. `allowance` and
// `served` may be null; they outlive the result.
StatusOr<JobSearch> MakeJobSearch(const CheckedJob& job, const LeasedDevice& device,
                                  const JobHistory& history, const WarmStart& start,
                                  const search::Models& models, search::KeptAllowance* allowance,
                                  ServedSearch* served,
                                  const std::vector<std::optional<SampledReference>>& samples,
                                  const std::vector<store::TaskRow>& rows);

}  // namespace kiln::scheduler
