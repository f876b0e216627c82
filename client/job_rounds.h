// Reads the rounds of a job's search, in order, from a scheduler or a database file.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "client/session.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

// Returns the rounds without their reports and best costs, which make up most of them. The job must
// have ended if a scheduler has it, since a stream about another job does not end.
StatusOr<std::vector<v1::Round>> RoundsOfJob(const Session& session, const std::string& job_id);

}  // namespace kiln::client
