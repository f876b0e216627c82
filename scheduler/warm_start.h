// A job's warm start: what earlier jobs measured (experience.h) teaches the model before its first
// trial, and is kept for its policies.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "scheduler/device_lease.h"
#include "scheduler/experience.h"
#include "scheduler/job_spec.h"
#include "scheduler/messages.h"
#include "scheduler/template_experience.h"
#include "search/policies/models.h"
#include "store/store.h"

namespace kiln::scheduler {

struct WarmStart {
  std::vector<TaskExperience> of_tasks;  // one for each task of the device
  bool knows_others = false;             // TeachesOthers
  TemplateExperience of_templates = {};  // of a policy that searches one and has a model
};

// Trains `models.learned`. Nothing is gathered where the job does not want it, or for a policy that
// has no model. Cancelled after `stop`; errors of the store. Takes seconds with a large database.
StatusOr<WarmStart> MakeWarmStart(const std::string& job_id, const CheckedJob& job,
                                  const LeasedDevice& device, const search::Models& models,
                                  store::Store& store, const std::stop_token& stop);

// By task, for people.
std::vector<LiveStatus::Known> KnownStatesOf(const WarmStart& start);

}  // namespace kiln::scheduler
