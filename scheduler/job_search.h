// What a job's search begins with: a policy for each task, which has observed what is known, and
// the options of the tuning loop.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "scheduler/device_lease.h"
#include "scheduler/job_history.h"
#include "scheduler/job_spec.h"
#include "scheduler/task_sample.h"
#include "scheduler/warm_start.h"
#include "search/policies/models.h"
#include "search/tuning/tune.h"

namespace kiln::scheduler {

struct JobSearch {
  std::vector<std::unique_ptr<search::Policy>> policies;
  std::vector<search::TuneTask> tasks;  // of these policies
  search::TuneOptions options;          // without deadlines, phases and those who look
};

// By task: a sample of the outputs where the unscheduled loops surely take longer than a reference
// may; none: all elements are compared.
std::vector<std::optional<TaskSample>> SamplesOf(const CheckedJob& job);

// The device's tasks outlive what is returned. Errors of MakePolicy.
StatusOr<JobSearch> MakeJobSearch(const CheckedJob& job, const LeasedDevice& device,
                                  const JobHistory& history, const WarmStart& start,
                                  const search::Models& models,
                                  const std::vector<std::optional<TaskSample>>& samples);

}  // namespace kiln::scheduler
