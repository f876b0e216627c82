// Finds the cost model that a user names: a file, or the name of a kept model.
#pragma once

#include <string>

#include "base/status.h"
#include "client/client.h"
#include "client/models.h"
#include "client/session.h"
#include "costmodel/model_file.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

// Returns the file of that name if there is one, otherwise a kept model, whose existence is not
// checked.
StatusOr<NamedOrFile> ParseModelSource(const std::string& model);

// Returns the content of the model.
StatusOr<costmodel::ModelFile> ReadModelSource(const std::string& model, const Session& session);

// If the job names a model's file, the scheduler keeps the file, and the job names the kept model.
Status KeepModelOf(const SchedulerClient& client, v1::JobSpec& spec);

}  // namespace kiln::client
