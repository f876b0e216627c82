// The trained cost model that a job begins with. The store keeps it by its name.
#pragma once

#include <optional>

#include "base/status.h"
#include "costmodel/model_file.h"
#include "proto/scheduler.pb.h"
#include "store/store.h"

namespace kiln::scheduler {

// Returns nullopt if the job names no model. NotFound if the store no longer has the model.
StatusOr<std::optional<costmodel::ModelFile>> ModelOfJob(store::Store& store,
                                                         const v1::TuneOptions& options);

// Checks, when a job is submitted, that the model exists, that the job's policy can learn with it,
// that it is for the job's kind of target, and that the job's parameters are parameters of a model.
Status CheckCostModel(store::Store& store, const v1::JobSpec& spec);

}  // namespace kiln::scheduler
