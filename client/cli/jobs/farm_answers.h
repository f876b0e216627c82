// Asks a scheduler what `kiln why` and the estimates of `kiln jobs` are made of.
#pragma once

#include "base/status.h"
#include "client/client.h"
#include "client/session.h"
#include "client/view/why.h"

namespace kiln::client {

// Three calls: the newest 500 jobs, the workers, and the limits of users. Workers that the
// scheduler cannot tell are left out, and so are limits that it does not keep or may not tell.
StatusOr<FarmAnswers> AskFarm(const Session& session, SchedulerClient& client);

}  // namespace kiln::client
