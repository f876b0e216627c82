#include "base/server/own_connections.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/server/listen.h"
#include "base/server/net.h"
#include "base/server/socket_peer.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

// A server on loopback with one connection to it.
struct Connected {
  ListeningSockets listening;
  int port = 0;
  UniqueFd client;
  UniqueFd server;
};

Connected Connect() {
  Connected made;
  made.listening = *Listen({"127.0.0.1", 0});
  made.port = made.listening.port;
  made.client = UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(made.port));
  EXPECT_EQ(
      connect(made.client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  while (!made.server.valid()) {
    made.server = UniqueFd(accept(made.listening.sockets[0].get(), nullptr, nullptr));
  }
  return made;
}

// Returns whether the other end has closed.
bool HasEnded(const UniqueFd& socket) {
  char byte;
  return recv(socket.get(), &byte, 1, MSG_DONTWAIT) == 0;
}

TEST(OwnConnectionsTest, AServersConnectionsAreClosedAndNoOther) {
  const Connected bad = Connect(), good = Connect();
  EXPECT_EQ(ShutDownConnections("127.0.0.2", {bad.port}), 0);
  EXPECT_EQ(ShutDownConnections("127.0.0.1", {}), 0);
  EXPECT_FALSE(HasEnded(bad.client));
  EXPECT_EQ(ShutDownConnections("127.0.0.1", {bad.port, 1}), 1);
  EXPECT_TRUE(HasEnded(bad.client));
  EXPECT_TRUE(HasEnded(bad.server));
  EXPECT_FALSE(HasEnded(good.client));
  EXPECT_FALSE(HasEnded(good.server));
}

TEST(OwnConnectionsTest, APeerHasTheNameThatGrpcGivesIt) {
  const Connected made = Connect();
  EXPECT_EQ(PeerOfSocket(made.client.get())->GrpcName(),
            fmt::format("ipv4:127.0.0.1:{}", made.port));
  EXPECT_FALSE(PeerOfSocket(made.listening.sockets[0].get()).has_value());
  EXPECT_FALSE(PeerOfSocket(STDIN_FILENO).has_value());
  sockaddr_in6 mapped{};
  mapped.sin6_family = AF_INET6;
  mapped.sin6_port = htons(7);
  mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
  mapped.sin6_addr.s6_addr[12] = 10;
  mapped.sin6_addr.s6_addr[15] = 3;
  const auto name = [](const sockaddr_in6& address) {
    return PeerOfAddress(reinterpret_cast<const sockaddr&>(address))->GrpcName();
  };
  EXPECT_EQ(name(mapped), "ipv4:10.0.0.3:7");
  sockaddr_in6 loopback = mapped;
  loopback.sin6_addr = in6addr_loopback;
  EXPECT_EQ(name(loopback), "ipv6:[::1]:7");
}

}  // namespace
}  // namespace kiln
