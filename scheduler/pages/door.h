// Lets browsers into the scheduler's pages: the answer to the call OpenDashboard.
#pragma once

#include <functional>
#include <optional>

#include "base/keys/identity.h"
#include "base/status.h"
#include "proto/scheduler.pb.h"
#include "rpc/http/http_port.h"
#include "rpc/http/sessions.h"

namespace kiln::scheduler {

// Returns a function that makes a token for a caller; none where there are no certificates. The
// port has started by the first call, and has these sessions. Both outlive the function.
std::function<StatusOr<v1::OpenDashboardReply>(const std::optional<Identity>& caller)> DoorOf(
    const HttpPort& port, BrowserSessions& sessions);

}  // namespace kiln::scheduler
