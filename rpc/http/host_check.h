// Finds out requests that a page of another site has sent to this machine's own pages.
//
// A site can make its name stand for 127.0.0.1, and its page in a browser of this machine then
// reaches what listens on loopback (DNS rebinding). The header Host gives it away: it has the name
// of the site.
#pragma once

#include <string_view>

#include "base/server/net.h"
#include "base/status.h"

namespace kiln {

// `host` is the value of the header Host, `listening` the address of the port. OK unless the port
// listens on loopback and the host is another than localhost, an address of loopback, or the one
// that the port listens on. PermissionDenied then.
Status CheckHost(std::string_view host, const HostPort& listening);

}  // namespace kiln
