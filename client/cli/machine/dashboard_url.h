// The address at which a browser enters the scheduler's pages.
#pragma once

#include <string>

#include "base/status.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

// Returns "http://HOST:PORT/login?token=TOKEN", "https:" with TLS, on the host of `scheduler`,
// which is HOST:PORT. InvalidArgument: it is not.
StatusOr<std::string> DashboardUrl(const std::string& scheduler,
                                   const v1::OpenDashboardReply& door);

}  // namespace kiln::client
