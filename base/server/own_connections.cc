#include "base/server/own_connections.h"

#include <netdb.h>
#include <sys/socket.h>

#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "base/server/socket_peer.h"

namespace kiln {
namespace {

// Returns the numeric addresses of the host; none if it is not known.
std::set<std::string> AddressesOf(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return {};
  std::set<std::string> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (const auto peer = PeerOfAddress(*one->ai_addr)) addresses.insert(peer->host);
  }
  freeaddrinfo(found);
  return addresses;
}

// A descriptor may be closed, and its number used anew, at any time.
std::vector<int> OpenDescriptors() {
  std::vector<int> descriptors;
  std::error_code error;
  std::filesystem::directory_iterator entries("/proc/self/fd", error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    int fd = -1;
    if (std::from_chars(name.data(), name.data() + name.size(), fd).ec == std::errc()) {
      descriptors.push_back(fd);
    }
  }
  return descriptors;
}

}  // namespace

int ShutDownConnections(const std::string& host, const std::set<int>& ports) {
  const std::set<std::string> addresses = AddressesOf(host);
  int count = 0;
  for (const int fd : OpenDescriptors()) {
    const std::optional<SocketPeer> peer = PeerOfSocket(fd);
    if (!peer.has_value() || !ports.contains(peer->port)) continue;
    if (!addresses.empty() && !addresses.contains(peer->host)) continue;
    if (shutdown(fd, SHUT_RDWR) == 0) ++count;
  }
  return count;
}

}  // namespace kiln
