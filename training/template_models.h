// Results that earlier jobs measured with the templates that a job searches, for any computation.
// These results give the base models with which the job's searches begin
// (search/policies/template_history.h).
//
// Each template has one base model, of the newest records of the job's target. The records are
// chosen as the earlier results of schedules are (earlier_results.h), and as many. Only records of
// other jobs count, so a scheduler that starts again learns the same.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "search/space/parameters.h"
#include "search/space/task.h"
#include "search/templates/template.h"
#include "search/templates/tuners/base_model.h"
#include "store/store.h"
#include "training/earlier_results.h"

namespace kiln::training {

struct TemplateModels {
  // One for each task. Null: no results are known, or too few.
  std::vector<std::shared_ptr<const search::BaseModel>> of_tasks;
  // For people: for each template, how many results of which computations were learned from, or why
  // the existing results were not.
  std::vector<std::string> notices;
};

// `given` and `parameters` are those of a checked job whose policy learns from points. Gathers
// nothing if template_history is 0. Returns errors of the store, and Cancelled after `gather.stop`.
// Cost: a second or two with thousands of records.
StatusOr<TemplateModels> LearnTemplateModels(store::Store& store, std::string_view job_id,
                                             const search::TemplatePtr& given,
                                             const search::Parameters& parameters,
                                             std::span<const search::Task> tasks, ThreadPool& pool,
                                             const EarlierResultsOptions& gather = {});

}  // namespace kiln::training
