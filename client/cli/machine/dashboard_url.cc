#include "client/cli/machine/dashboard_url.h"

#include <fmt/format.h>

#include "base/server/net.h"

namespace kiln::client {

StatusOr<std::string> DashboardUrl(const std::string& scheduler,
                                   const v1::OpenDashboardReply& door) {
  KILN_ASSIGN_OR_RETURN(HostPort place, ParseHostPort(scheduler));
  place.port = static_cast<int>(door.port());
  return fmt::format("{}://{}/login?token={}", door.tls() ? "https" : "http", place.ToString(),
                     door.token());
}

}  // namespace kiln::client
