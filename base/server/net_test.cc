#include "base/server/net.h"

#include <netdb.h>

#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::HasSubstr;

TEST(ParseHostPortTest, Good) {
  EXPECT_EQ(*ParseHostPort("127.0.0.1:9190"), (HostPort{"127.0.0.1", 9190}));
  EXPECT_EQ(*ParseHostPort("gpu-box_1.example.org:1"), (HostPort{"gpu-box_1.example.org", 1}));
  EXPECT_EQ(*ParseHostPort("[::1]:65535"), (HostPort{"::1", 65535}));
  EXPECT_EQ(*ParseListenAddress("0.0.0.0:0"), (HostPort{"0.0.0.0", 0}));
}

TEST(ParseHostPortTest, PrintsWhatItParsed) {
  for (const char* text : {"127.0.0.1:9190", "[fe80::1%eth0]:80", "localhost:1"}) {
    ASSERT_OK_AND_ASSIGN(HostPort address, ParseHostPort(text));
    EXPECT_EQ(address.ToString(), text);
  }
}

TEST(ParseHostPortTest, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "the address is empty: expected HOST:PORT, as in 127.0.0.1:9190"},
      {"host", "'host' has no port: expected HOST:PORT"},
      {"[::1]", "'[::1]' has no port"},
      {":80", "':80' has no host"},
      {"[]:80", "'[]:80' has no host"},
      {"host:", "'host:' has the port '', expected a number from 1 to 65535"},
      {"host:0", "has the port '0', expected a number from 1 to 65535"},
      {"host:65536", "has the port '65536'"},
      {"host:99999999999999", "has the port '99999999999999'"},
      {"host:-1", "has the port '-1'"},
      {"host:8 0", "has the port '8 0'"},
      {"host:http", "has the port 'http'"},
      {"::1:80", "has more than one ':'"},
      {"a b:80", "has the character ' ' in its host"},
      {"http://host:80", "has more than one ':'"},
      {"[::1:80", "has the character '[' in its host"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(ParseHostPort(text), StatusIs(StatusCode::kInvalidArgument, HasSubstr(message)))
        << text;
  }
  EXPECT_THAT(ParseListenAddress("host:-1"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("from 0 to 65535")));
}

TEST(NetTest, Loopback) {
  for (const char* host : {"127.0.0.1", "127.1.2.3", "::1"}) {
    EXPECT_TRUE(IsLoopback({host, 1})) << host;
  }
  for (const char* host : {"0.0.0.0", "::", "192.0.2.1", "128.0.0.1", "no-such-host.invalid"}) {
    EXPECT_FALSE(IsLoopback({host, 1})) << host;
  }
}

TEST(NetTest, LoopbackByName) {
  if (gethostbyname("localhost") == nullptr) GTEST_SKIP() << "no localhost in /etc/hosts";
  EXPECT_TRUE(IsLoopback({"localhost", 1}));
}

TEST(NetTest, HostName) { EXPECT_FALSE(HostName().empty()); }

}  // namespace
}  // namespace kiln
