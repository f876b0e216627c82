#include "rpc/otlp/http_post.h"

#include <httplib.h>

#include <mutex>
#include <string>
#include <thread>

#include "base/status_testing.h"

namespace kiln {
namespace {

// A collector in this process.
class Collector {
 public:
  Collector() {
    server_.Post("/v1/traces", [this](const httplib::Request& request, httplib::Response& answer) {
      std::lock_guard lock(mutex_);
      body_ = request.body;
      type_ = request.get_header_value("Content-Type");
      answer.status = status_;
      answer.set_content("{}", "application/json");
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~Collector() {
    server_.stop();
    thread_.join();
  }

  std::string address() const { return fmt::format("127.0.0.1:{}", port_); }
  void AnswerWith(int status) {
    std::lock_guard lock(mutex_);
    status_ = status;
  }
  std::string body() {
    std::lock_guard lock(mutex_);
    return body_;
  }
  std::string type() {
    std::lock_guard lock(mutex_);
    return type_;
  }

 private:
  httplib::Server server_;
  std::mutex mutex_;
  std::string body_, type_;
  int status_ = 200;
  int port_ = 0;
  std::thread thread_;
};

TEST(HttpPostTest, ACollectorGetsTheBody) {
  Collector collector;
  ASSERT_OK_AND_ASSIGN(const OtlpExporter::Post post, PostTo(collector.address()));
  const std::string body = std::string("\n\0\xff", 3) + std::string(100'000, ' ');
  ASSERT_OK_AND_ASSIGN(const int status, post(body));
  EXPECT_EQ(status, 200);
  EXPECT_EQ(collector.body(), body);
  EXPECT_EQ(collector.type(), "application/x-protobuf");
  collector.AnswerWith(503);
  ASSERT_OK_AND_ASSIGN(const int busy, post("x"));
  EXPECT_EQ(busy, 503);
}

TEST(HttpPostTest, NobodyThereIsAnError) {
  std::string address;
  {
    Collector collector;
    address = collector.address();
  }
  ASSERT_OK_AND_ASSIGN(const OtlpExporter::Post post, PostTo(address));
  EXPECT_THAT(post("x"), StatusIs(StatusCode::kUnavailable, testing::HasSubstr(address)));
  EXPECT_FALSE(PostTo("nowhere").ok());
}

}  // namespace
}  // namespace kiln
