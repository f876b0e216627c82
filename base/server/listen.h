// Sockets that listen for connections.
#pragma once

#include <vector>

#include "base/file/fd.h"
#include "base/server/net.h"
#include "base/status.h"

namespace kiln {

// Sockets for one port at all addresses that a name stands for.
struct ListeningSockets {
  // The sockets do not block.
  std::vector<UniqueFd> sockets;
  // The port that was bound.
  int port = 0;
};

// Listens at `address`; port 0 means any free port. All addresses of this machine ("0.0.0.0" and
// "::") include IPv6 addresses if there is IPv6. No other process can share the port. Errors are
// for instance "127.0.0.1:80: Permission denied".
StatusOr<ListeningSockets> Listen(const HostPort& address);

}  // namespace kiln
