// The other end of a TCP connection.
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>

namespace kiln {

struct SocketPeer {
  // A numeric address, "127.0.0.1" or "fe80::1%2". IPv4 in the form of IPv6 counts as IPv4.
  std::string host;
  int port = 0;

  // Returns the name that gRPC gives the peer: "ipv4:127.0.0.1:4711", "ipv6:[::1]:4711".
  std::string GrpcName() const;
};

// Returns nothing for an address of another family than IPv4 and IPv6.
std::optional<SocketPeer> PeerOfAddress(const sockaddr& address);

// Returns nothing for what is no connected socket of TCP.
std::optional<SocketPeer> PeerOfSocket(int fd);

}  // namespace kiln
