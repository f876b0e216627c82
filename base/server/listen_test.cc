#include "base/server/listen.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::HasSubstr;

bool CanConnect(const char* host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, host, &address.sin_addr);
  const UniqueFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
}

void ExpectListens(const char* host) {
  ASSERT_OK_AND_ASSIGN(const ListeningSockets listening, Listen({host, 0}));
  EXPECT_FALSE(listening.sockets.empty()) << host;
  EXPECT_GT(listening.port, 0) << host;
  EXPECT_TRUE(CanConnect("127.0.0.1", listening.port)) << host;
  EXPECT_THAT(Listen({host, listening.port}),
              StatusIs(testing::_, HasSubstr("Address already in use")))
      << host;
}

TEST(ListenTest, AFreePortIsSaidAndTaken) {
  for (const char* host : {"127.0.0.1", "0.0.0.0", "::"}) ExpectListens(host);
}

TEST(ListenTest, NamesAreLookedUp) {
  if (gethostbyname("localhost") == nullptr) GTEST_SKIP() << "no localhost in /etc/hosts";
  ExpectListens("localhost");
}

TEST(ListenTest, ATakenPortIsFreeAgainAtOnce) {
  int port = 0;
  {
    ASSERT_OK_AND_ASSIGN(const ListeningSockets listening, Listen({"127.0.0.1", 0}));
    port = listening.port;
    EXPECT_TRUE(CanConnect("127.0.0.1", port));
  }
  EXPECT_OK(Listen({"127.0.0.1", port}));
}

TEST(ListenTest, AnAddressOfAnotherMachineIsRefused) {
  // An address of TEST-NET-1, which nobody has.
  EXPECT_THAT(Listen({"192.0.2.1", 0}),
              StatusIs(testing::_, HasSubstr("192.0.2.1:0: Cannot assign requested address")));
  EXPECT_THAT(Listen({"no-such-host.invalid", 0}),
              StatusIs(StatusCode::kUnavailable, HasSubstr("no-such-host.invalid:0: ")));
}

}  // namespace
}  // namespace kiln
