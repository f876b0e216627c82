#include "rpc/http/http_message.h"

#include "base/status_testing.h"

namespace kiln {
namespace {

TEST(ErrorReplyTest, HasTheStatusOfTheCodeAndOneLine) {
  const std::pair<StatusCode, int> cases[] = {
      {StatusCode::kInvalidArgument, 400},   {StatusCode::kUnauthenticated, 401},
      {StatusCode::kPermissionDenied, 403},  {StatusCode::kNotFound, 404},
      {StatusCode::kUnimplemented, 405},     {StatusCode::kUnavailable, 503},
      {StatusCode::kResourceExhausted, 503}, {StatusCode::kInternal, 500},
  };
  for (const auto& [code, status] : cases) {
    const HttpReply reply = ErrorReply(MakeStatus(code, "no\nsuch \x1b page"));
    EXPECT_EQ(reply.status, status);
    EXPECT_EQ(reply.body, "no such   page\n");
  }
}

TEST(EventTextTest, KeepsLinesAndBreaksOutOfNothing) {
  EXPECT_EQ(EventText({.data = "one"}), "data: one\n\n");
  EXPECT_EQ(EventText({.id = "7", .name = "job", .data = "a\nb"}),
            "id: 7\nevent: job\ndata: a\ndata: b\n\n");
  EXPECT_EQ(EventText({.id = "7\ndata: x", .name = "a\rb", .data = "c\r\nd\re\n"}),
            "id: 7data: x\nevent: ab\ndata: c\ndata: d\ndata: e\ndata: \n\n");
}

TEST(HttpRequestTest, AParameterThatIsNotThereIsEmpty) {
  const HttpRequest request{.parameters = {{"a", "1"}}};
  EXPECT_EQ(request.Parameter("a"), "1");
  EXPECT_EQ(request.Parameter("b"), "");
}

}  // namespace
}  // namespace kiln
