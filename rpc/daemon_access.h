// The access of a daemon, as its flags name it.
#pragma once

#include "base/server/daemon_program.h"
#include "base/status.h"
#include "rpc/farm_access.h"

namespace kiln {

// Returns the keys of --keys, the secret of --secret-file, or nothing (FarmAccess::Open).
// FailedPrecondition if other machines can reach the address of --listen and there are no keys,
// unless --insecure is given: a secret would go through the network in the clear.
// FailedPrecondition for the keys of somebody who is no daemon.
//
// Keys bring threads of gRPC along, so a daemon makes its StopSignal and finds its sandbox first.
StatusOr<FarmAccess> OpenAccess(const DaemonFlags& flags);

}  // namespace kiln
