#include "rpc/http/daemon_pages.h"

#include "base/status_testing.h"
#include "rpc/http/http_testing.h"

namespace kiln {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

StatusOr<std::string> Get(int port, std::string_view path) {
  KILN_ASSIGN_OR_RETURN(TestHttpClient client, TestHttpClient::Connect(port));
  client.SendGet(path);
  return client.ReadAll();
}

TEST(DaemonPagesTest, ShowsHealthAndFigures) {
  ASSERT_OK_AND_ASSIGN(const auto pages,
                       DaemonPages::Make({.listen = "127.0.0.1:0", .service = "tracker"}));
  pages->metrics().AddCounter("kiln_leases_total", "Leases.").Add(3);
  pages->calls().Hook()("/kiln.v1.Tracker/List", grpc::StatusCode::OK);
  EXPECT_EQ(pages->address(), "");
  ASSERT_OK(pages->Start());
  const int port = pages->port()->port();
  EXPECT_EQ(pages->address(), fmt::format("127.0.0.1:{}", port));
  EXPECT_THAT(*Get(port, "/healthz"), AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("\r\n\r\nok\n")));
  EXPECT_THAT(*Get(port, "/metrics"),
              AllOf(StartsWith("HTTP/1.1 200"),
                    HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"),
                    HasSubstr("\nkiln_leases_total 3\n"),
                    HasSubstr("kiln_build_info{service=\"tracker\",version="),
                    HasSubstr("kiln_grpc_calls_total{code=\"OK\",method=\"Tracker.List\"} 1\n"),
                    HasSubstr("kiln_http_replies_total{status=\"2xx\"} 1\n"),
                    HasSubstr("process_resident_memory_bytes ")));
}

TEST(DaemonPagesTest, WithoutAPortThereAreFiguresAndNoPages) {
  ASSERT_OK_AND_ASSIGN(const auto pages, DaemonPages::Make({.flags = {.http_port = "off"},
                                                            .listen = "127.0.0.1:0",
                                                            .service = "tracker"}));
  pages->metrics().AddCounter("kiln_leases_total", "Leases.").Add();
  ASSERT_OK(pages->Start());
  EXPECT_EQ(pages->port(), nullptr);
  EXPECT_EQ(pages->address(), "");
}

TEST(DaemonPagesTest, OthersReachThePagesOnTheAdvertisedHost) {
  ASSERT_OK_AND_ASSIGN(const auto pages, DaemonPages::Make({.listen = "127.0.0.1:0",
                                                            .advertise = "box.example:9390",
                                                            .service = "builder"}));
  ASSERT_OK(pages->Start());
  EXPECT_EQ(pages->address(), fmt::format("box.example:{}", pages->port()->port()));
}

}  // namespace
}  // namespace kiln
