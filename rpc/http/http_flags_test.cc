#include "rpc/http/http_flags.h"

#include <CLI/CLI.hpp>

#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::HasSubstr;

TEST(HttpFlagsTest, APortOrOff) {
  EXPECT_EQ(**ParseHttpPort("0"), 0);
  EXPECT_EQ(**ParseHttpPort("9191"), 9191);
  EXPECT_FALSE(ParseHttpPort("off")->has_value());
  for (const char* text : {"", "-1", "65536", "9191x", " 1", "on", "99999999999"}) {
    EXPECT_THAT(ParseHttpPort(text),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("expected a port from 0")));
  }
}

TEST(HttpFlagsTest, TheCommandLineIsChecked) {
  CLI::App app;
  HttpFlags flags;
  AddHttpFlag(app, flags);
  app.parse("--http-port off");
  EXPECT_EQ(flags.http_port, "off");
  EXPECT_THROW(app.parse("--http-port x"), CLI::ValidationError);
}

}  // namespace
}  // namespace kiln
