// What earlier jobs measured of the templates that a job searches, for whatever computation: the
// base models that its searches begin with (search/policies/template_history.h).
//
// One for each template, of the newest records of the job's target; the same ones as the experience
// of schedules has (experience.h), and as many. Records of other jobs alone: a scheduler that starts
// again learns the same.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "proto/scheduler.pb.h"
#include "scheduler/experience.h"
#include "search/space/task.h"
#include "search/templates/tuners/base_model.h"
#include "store/store.h"

namespace kiln::scheduler {

struct TemplateExperience {
  // By task; null: nothing is known, or not enough.
  std::vector<std::shared_ptr<const search::BaseModel>> of_tasks;
  // For people: of which template, how many results of which computations were learned from; or why
  // those that are there were not.
  std::vector<std::string> notices;
};

// `options` as of a checked job whose policy learns from points. Nothing where template_history is
// 0. Errors of the store; Cancelled after `gather.stop`. Cost: a second or two with thousands of
// records.
StatusOr<TemplateExperience> GatherTemplateExperience(store::Store& store, std::string_view job_id,
                                                      const v1::TuneOptions& options,
                                                      std::span<const search::Task> tasks,
                                                      ThreadPool& pool,
                                                      const ExperienceOptions& gather = {});

}  // namespace kiln::scheduler
