// The trained cost model that a job begins with: one that the store keeps, by its name.
#pragma once

#include <optional>

#include "base/status.h"
#include "costmodel/model_file.h"
#include "proto/scheduler.pb.h"
#include "store/store.h"

namespace kiln::scheduler {

// Nullopt: the job names none. NotFound: it is not there any more.
StatusOr<std::optional<costmodel::ModelFile>> ModelOfJob(store::Store& store,
                                                         const v1::TuneOptions& options);

// When a job is submitted: is there such a model, is it one that the job's policy learns with, of
// the job's kind of target, and are the parameters those of a model?
Status CheckCostModel(store::Store& store, const v1::JobSpec& spec);

}  // namespace kiln::scheduler
