// Network addresses in text: HOST:PORT, where HOST is a
// name, an IPv4 address or an IPv6 address in brackets.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln {

struct HostPort {
  std::string host;  // without brackets
  int port = 0;

  std::string ToString() const;  // "127.0.0.1:9190", "[::1]:9190"
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

// An address to connect to: port 1 to 65535. Only the form is checked; no name is looked up.
StatusOr<HostPort> ParseHostPort(std::string_view text);

// An address to listen on: port 0 is allowed and means any free one.
StatusOr<HostPort> ParseListenAddress(std::string_view text);

// Whether only this machine can reach it: every address that the host stands for is a loopback one.
bool IsLoopback(const HostPort& address);

// The name of this machine.
std::string HostName();

}  // namespace kiln
