#include "client/cli/machine/dashboard_url.h"

#include <gtest/gtest.h>

#include "base/status_testing.h"

namespace kiln::client {
namespace {

v1::OpenDashboardReply Door(bool tls) {
  v1::OpenDashboardReply door;
  door.set_port(9291);
  door.set_tls(tls);
  door.set_token("ab12");
  door.set_token_s(60);
  return door;
}

TEST(DashboardUrlTest, IsOnTheHostOfTheScheduler) {
  const auto url = DashboardUrl("127.0.0.1:9290", Door(false));
  ASSERT_OK(url);
  EXPECT_EQ(*url, "http://127.0.0.1:9291/login?token=ab12");
}

TEST(DashboardUrlTest, IsSecureWithKeysAndKeepsTheBracketsOfAnAddress) {
  const auto url = DashboardUrl("[::1]:9290", Door(true));
  ASSERT_OK(url);
  EXPECT_EQ(*url, "https://[::1]:9291/login?token=ab12");
}

TEST(DashboardUrlTest, RefusesAPlaceThatIsNone) {
  EXPECT_THAT(DashboardUrl("nowhere", Door(false)),
              StatusIs(StatusCode::kInvalidArgument, testing::_));
}

}  // namespace
}  // namespace kiln::client
