#include "base/server/net.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>

namespace kiln {
namespace {

constexpr std::string_view kExpected = "expected HOST:PORT, as in 127.0.0.1:9190";

bool IsHostCharacter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
         c == '-' || c == '_';
}

bool IsIpv6Character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' ||
         c == '.' || c == '%';
}

Status CheckHost(std::string_view host, bool brackets, std::string_view text) {
  if (host.empty()) return InvalidArgument("'{}' has no host: {}", text, kExpected);
  // True within the zone of an address: fe80::1%eth0.
  bool zone = false;
  for (char c : host) {
    if (brackets && !zone ? IsIpv6Character(c) : IsHostCharacter(c)) {
      zone |= c == '%';
      continue;
    }
    if (c == ':') {
      return InvalidArgument(
          "'{}' has more than one ':' ({}; an IPv6 address needs brackets: [::1]:9190)", text,
          kExpected);
    }
    return InvalidArgument("'{}' has the character '{}' in its host: {}", text, c, kExpected);
  }
  return OkStatus();
}

StatusOr<HostPort> Parse(std::string_view text, int lowest_port) {
  const size_t colon = text.rfind(':');
  if (text.empty()) return InvalidArgument("the address is empty: {}", kExpected);
  if (colon == std::string_view::npos || text.ends_with(']')) {
    return InvalidArgument("'{}' has no port: {}", text, kExpected);
  }
  std::string_view host = text.substr(0, colon);
  const bool brackets = host.starts_with('[') && host.ends_with(']');
  if (brackets) host = host.substr(1, host.size() - 2);
  KILN_RETURN_IF_ERROR(CheckHost(host, brackets, text));

  const std::string_view port_text = text.substr(colon + 1);
  int port = 0;
  const char* end = port_text.data() + port_text.size();
  auto [stop, error] = std::from_chars(port_text.data(), end, port);
  if (error != std::errc() || stop != end || port < lowest_port || port > 65535) {
    return InvalidArgument("'{}' has the port '{}', expected a number from {} to 65535", text,
                           port_text, lowest_port);
  }
  return HostPort{std::string(host), port};
}

bool IsLoopbackAddress(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
  }
  if (address.sa_family != AF_INET6) return false;
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

}  // namespace

std::string HostPort::ToString() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  return ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

StatusOr<HostPort> ParseHostPort(std::string_view text) { return Parse(text, 1); }

StatusOr<HostPort> ParseListenAddress(std::string_view text) { return Parse(text, 0); }

bool IsLoopback(const HostPort& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.host.c_str(), nullptr, &hints, &found) != 0) return false;
  bool loopback = found != nullptr;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    loopback = loopback && IsLoopbackAddress(*one->ai_addr);
  }
  freeaddrinfo(found);
  return loopback;
}

std::string HostName() {
  char name[256] = "localhost";
  gethostname(name, sizeof(name) - 1);
  return name;
}

}  // namespace kiln
