#include "scheduler/jobs/job_model.h"

#include <map>
#include <string>

#include "search/policies/models.h"
#include "search/policies/policy.h"
#include "training/wire/model_calls.h"

namespace kiln::scheduler {

StatusOr<std::optional<costmodel::ModelFile>> ModelOfJob(store::Store& store,
                                                         const v1::TuneOptions& options) {
  if (options.cost_model().empty()) return std::nullopt;
  KILN_ASSIGN_OR_RETURN(costmodel::ModelFile file,
                        training::ReadModel(store, options.cost_model()));
  return file;
}

Status CheckCostModel(store::Store& store, const v1::JobSpec& spec) {
  const v1::TuneOptions& options = spec.options();
  if (options.cost_model().empty() && options.model_parameters().empty()) return OkStatus();
  KILN_ASSIGN_OR_RETURN(const auto file, ModelOfJob(store, options));
  const std::string policy =
      options.policy().empty() ? std::string(search::Policies().front()->name) : options.policy();
  KILN_RETURN_IF_ERROR(search::MakeModels(policy, options.seed(), {}, {},
                                          {.trained = file.has_value() ? &*file : nullptr,
                                           .parameters = {options.model_parameters().begin(),
                                                          options.model_parameters().end()}})
                           .status());
  if (!file.has_value()) return OkStatus();
  for (const v1::TaskSpec& task : spec.tasks())
    KILN_RETURN_IF_ERROR(training::CheckKindOfTarget(file->info, task.target()));
  return OkStatus();
}

}  // namespace kiln::scheduler
