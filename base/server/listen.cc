#include "base/server/listen.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "base/errno_status.h"

namespace kiln {
namespace {

// Number of ports to try, because a port that is free at one address may be taken at another.
constexpr int kPortTries = 16;

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

bool IsAllAddresses(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

StatusOr<Addresses> LookUp(const HostPort& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(address.host.c_str(), fmt::format("{}", address.port).c_str(), &hints, &found);
  if (error != 0) return Unavailable("{}: {}", address.ToString(), gai_strerror(error));
  return Addresses(found, &freeaddrinfo);
}

int PortOf(int socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size);
  // The port is in the same place for both families.
  return ntohs(reinterpret_cast<const sockaddr_in&>(bound).sin_port);
}

// Returns the errno of the failure; 0: `socket` listens.
int ListenAt(const sockaddr& address, socklen_t size, bool both_families, UniqueFd& socket) {
  socket = UniqueFd(
      ::socket(address.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!socket.valid()) return errno;
  const int on = 1;
  const int six_only = both_families ? 0 : 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  // Connections inherit this option.
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (address.sa_family == AF_INET6) {
    setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &six_only, sizeof(six_only));
  }
  if (bind(socket.get(), &address, size) != 0) return errno;
  return listen(socket.get(), SOMAXCONN) != 0 ? errno : 0;
}

bool ListenAtAllAddresses(int port, ListeningSockets& listening) {
  sockaddr_in6 all{};
  all.sin6_family = AF_INET6;
  all.sin6_addr = in6addr_any;
  all.sin6_port = htons(static_cast<uint16_t>(port));
  UniqueFd socket;
  if (ListenAt(reinterpret_cast<const sockaddr&>(all), sizeof(all), true, socket) != 0) {
    return false;
  }
  listening.port = PortOf(socket.get());
  listening.sockets.push_back(std::move(socket));
  return true;
}

void SetPort(sockaddr& address, int port) {
  reinterpret_cast<sockaddr_in&>(address).sin_port = htons(static_cast<uint16_t>(port));
}

// Returns the errno of the first address that failed; 0: all listen. An address that this machine
// lacks is passed over if another one is there; "localhost" for instance may have an IPv6 address
// that is missing.
int ListenAtEach(const addrinfo* first, ListeningSockets& listening) {
  int missing = 0;
  for (const addrinfo* one = first; one != nullptr; one = one->ai_next) {
    if (listening.port != 0) SetPort(*one->ai_addr, listening.port);
    UniqueFd socket;
    const int error = ListenAt(*one->ai_addr, one->ai_addrlen, false, socket);
    if (error == EADDRNOTAVAIL || error == EAFNOSUPPORT) {
      missing = error;
      continue;
    }
    if (error != 0) return error;
    listening.port = PortOf(socket.get());
    listening.sockets.push_back(std::move(socket));
  }
  return listening.sockets.empty() ? missing : 0;
}

}  // namespace

StatusOr<ListeningSockets> Listen(const HostPort& address) {
  ListeningSockets listening;
  if (IsAllAddresses(address.host) && ListenAtAllAddresses(address.port, listening)) {
    return listening;
  }
  KILN_ASSIGN_OR_RETURN(const Addresses addresses, LookUp(address));
  int error = 0;
  for (int i = 0; i < kPortTries; ++i) {
    listening = {};
    for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
      SetPort(*one->ai_addr, address.port);
    }
    error = ListenAtEach(addresses.get(), listening);
    if (error == 0) return listening;
    if (error != EADDRINUSE || address.port != 0) break;
  }
  return ErrnoStatus(error, "{}", address.ToString());
}

}  // namespace kiln
