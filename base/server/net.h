// Network addresses in text: HOST:PORT, where HOST is a name, an IPv4 address or an IPv6 address in
// brackets.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln {

struct HostPort {
  // The host without brackets.
  std::string host;
  int port = 0;

  // Returns "127.0.0.1:9190" or "[::1]:9190".
  std::string ToString() const;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

// Parses an address to connect to, with a port from 1 to 65535. Only the form is checked; no name
// is looked up.
StatusOr<HostPort> ParseHostPort(std::string_view text);

// Parses an address to listen on. Port 0 is allowed and means any free port.
StatusOr<HostPort> ParseListenAddress(std::string_view text);

// Returns whether only this machine can reach the host: all its addresses are loopback addresses.
bool IsLoopback(const HostPort& address);

// Returns the name of this machine.
std::string HostName();

}  // namespace kiln
