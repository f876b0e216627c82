// Sockets that wait for connections.
#pragma once

#include <vector>

#include "base/fd.h"
#include "base/net.h"
#include "base/status.h"

namespace kiln {

// One port at all addresses that a name stands for.
struct ListeningSockets {
  std::vector<UniqueFd> sockets;  // they do not block
  int port = 0;                   // the one that was bound
};

// Listens at `address`; port 0: any free one. All addresses of this machine ("0.0.0.0" and "::")
// are those of IPv6, too, where there is IPv6. Nobody shares the port. An error says why, as in
// "127.0.0.1:80: Permission denied".
StatusOr<ListeningSockets> Listen(const HostPort& address);

}  // namespace kiln
