#include "rpc/http/host_check.h"

#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::HasSubstr;

TEST(HostCheckTest, LoopbackIsForItsOwnNames) {
  const HostPort port{"127.0.0.1", 9191};
  for (const char* host : {"127.0.0.1:9191", "127.0.0.1", "localhost:9191", "LocalHost",
                           "127.9.9.9:1", "[::1]:9191", "[::1]"}) {
    EXPECT_TRUE(CheckHost(host, port).ok()) << host;
  }
  for (const char* host :
       {"", "evil.example", "evil.example:9191", "127.0.0.1.evil.example", "[", "]", ":",
        "192.0.2.1", "[::2]:9191", "localhost.evil.example", "127.0.0.1@evil.example", "0.0.0.0"}) {
    EXPECT_THAT(CheckHost(host, port),
                StatusIs(StatusCode::kPermissionDenied, HasSubstr("http://localhost:9191/")))
        << host;
  }
}

TEST(HostCheckTest, OtherPortsHaveNamesThatTheyDoNotKnow) {
  EXPECT_OK(CheckHost("scheduler.example:9291", {"0.0.0.0", 9291}));
}

}  // namespace
}  // namespace kiln
