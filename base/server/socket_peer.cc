#include "base/server/socket_peer.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstdint>

namespace kiln {
namespace {

SocketPeer PeerV4(in_addr address, uint16_t port) {
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &address, text, sizeof(text));
  return {text, ntohs(port)};
}

SocketPeer PeerV6(const sockaddr_in6& v6) {
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    in_addr v4{};
    std::copy_n(v6.sin6_addr.s6_addr + 12, 4, reinterpret_cast<uint8_t*>(&v4.s_addr));
    return PeerV4(v4, v6.sin6_port);
  }
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  std::string host = text;
  if (v6.sin6_scope_id != 0) host += fmt::format("%{}", v6.sin6_scope_id);
  return {host, ntohs(v6.sin6_port)};
}

}  // namespace

std::string SocketPeer::GrpcName() const {
  return host.find(':') == std::string::npos ? fmt::format("ipv4:{}:{}", host, port)
                                             : fmt::format("ipv6:[{}]:{}", host, port);
}

std::optional<SocketPeer> PeerOfAddress(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return PeerV4(v4.sin_addr, v4.sin_port);
  }
  if (address.sa_family != AF_INET6) return std::nullopt;
  return PeerV6(reinterpret_cast<const sockaddr_in6&>(address));
}

std::optional<SocketPeer> PeerOfSocket(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return std::nullopt;
  return PeerOfAddress(reinterpret_cast<const sockaddr&>(address));
}

}  // namespace kiln
