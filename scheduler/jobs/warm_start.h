// The warm start of a job: the results of earlier jobs (earlier_results.h) train the model before
// the first trial, and are kept for the job's policies.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "scheduler/jobs/device_lease.h"
#include "scheduler/values/job_spec.h"
#include "scheduler/values/messages.h"
#include "search/policies/models.h"
#include "store/store.h"
#include "training/earlier_results.h"
#include "training/template_models.h"

namespace kiln::scheduler {

struct WarmStart {
  std::vector<training::TaskResults> of_tasks;  // one for each task of the device
  bool knows_others = false;                    // whether CanRankNewTasks held
  training::TemplateModels of_templates =
      {};  // for a policy that searches templates and has a model
};

// Trains `models.learned`. Gathers nothing if the job does not want a warm start, or for a policy
// without a model. Cancelled after `stop`; returns errors of the store. Takes seconds with a large
// database.
StatusOr<WarmStart> MakeWarmStart(const std::string& job_id, const CheckedJob& job,
                                  const LeasedDevice& device, const search::Models& models,
                                  store::Store& store, const std::stop_token& stop);

// Returns the known results by task, for people.
std::vector<LiveStatus::Known> KnownStatesOf(const WarmStart& start);

}  // namespace kiln::scheduler
