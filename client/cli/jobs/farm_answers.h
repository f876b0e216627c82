// Asks a scheduler what `kiln why` and the estimates of `kiln jobs` are made of.
#pragma once

#include <string>

#include "base/status.h"
#include "client/client.h"
#include "client/session.h"
#include "scheduler/words/why.h"

namespace kiln::client {

// Two calls: the jobs that are queued or run, and the workers. Workers that the scheduler cannot
// tell are left out.
StatusOr<FarmAnswers> AskFarm(const Session& session, SchedulerClient& client);
// Asks for the limits of the user, which the scheduler has in memory. Limits that it does not keep
// or may not tell are left out.
void AskForLimits(SchedulerClient& client, const std::string& user, FarmAnswers& answers);

}  // namespace kiln::client
