// The address under which others reach a port of this process.
#pragma once

#include <string>

#include "base/server/net.h"
#include "base/status.h"

namespace kiln {

// `advertise` is HOST:PORT as the user gave it; if it is "", the address `bound` counts, and this
// machine's name replaces a host that means all addresses.
StatusOr<HostPort> ReachableAddress(const std::string& advertise, HostPort bound);

}  // namespace kiln
