#include "rpc/channel.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/file/fd.h"
#include "base/server/grpc_server.h"
#include "base/server/net.h"
#include "base/status_testing.h"
#include "proto/tracker.grpc.pb.h"

namespace kiln {
namespace {

class Lister : public v1::Tracker::Service {
 public:
  grpc::Status List(grpc::ServerContext* context, const v1::ListRequest*,
                    v1::ListReply* reply) override {
    for (const auto& [key, value] : context->client_metadata()) {
      if (key == "kiln-secret") reply->add_workers()->set_id({value.data(), value.size()});
    }
    return grpc::Status::OK;
  }
};

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Passes one connection on to a port, and passes every answer late, like a server on a busy
// machine.
class LateAnswers {
 public:
  LateAnswers(int port, std::chrono::milliseconds delay) : delay_(delay) {
    listener_.Reset(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address = Loopback(0);
    bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
    listen(listener_.get(), 8);
    socklen_t size = sizeof(address);
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this, port](const std::stop_token& stop) { Run(port, stop); });
  }

  std::string address() const { return fmt::format("127.0.0.1:{}", port_); }
  int connections() const { return connections_; }

 private:
  static bool Readable(int fd) {
    pollfd poll_fd{fd, POLLIN, 0};
    return poll(&poll_fd, 1, 10) > 0;
  }

  void Run(int port, const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (!Readable(listener_.get())) continue;
      const UniqueFd client(accept(listener_.get(), nullptr, nullptr));
      ++connections_;
      const UniqueFd server(socket(AF_INET, SOCK_STREAM, 0));
      const sockaddr_in address = Loopback(port);
      connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
      while (!stop.stop_requested() && Pass(client.get(), server.get(), {}) &&
             Pass(server.get(), client.get(), delay_)) {
      }
    }
  }

  static bool Pass(int from, int to, std::chrono::milliseconds delay) {
    if (!Readable(from)) return true;
    char bytes[65536];
    const ssize_t size = read(from, bytes, sizeof(bytes));
    if (size <= 0) return false;
    std::this_thread::sleep_for(delay);
    return write(to, bytes, static_cast<size_t>(size)) == size;
  }

  const std::chrono::milliseconds delay_;
  UniqueFd listener_;
  int port_ = 0;
  std::atomic<int> connections_{0};
  std::jthread thread_;
};

class ChannelTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(server_, GrpcServer::Start({.services = {&service_}}));
  }

  static grpc::Status List(const std::shared_ptr<grpc::Channel>& channel, v1::ListReply* reply) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    return v1::Tracker::NewStub(channel)->List(&context, {}, reply);
  }

  Lister service_;
  std::unique_ptr<GrpcServer> server_;
};

// The server's side of the handshake takes 400 ms; the channel must not give the connection up.
TEST_F(ChannelTest, AHandshakeMayTakeAWhile) {
  LateAnswers late(server_->port(), std::chrono::milliseconds(400));
  v1::ListReply reply;
  const grpc::Status status = List(MakeChannel(late.address()), &reply);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(late.connections(), 1);
}

TEST_F(ChannelTest, TheSecretGoesWithEachCall) {
  const Secret secret = Secret::Random();
  const auto channel = MakeChannel(server_->address(), secret);
  for (int call = 0; call < 2; ++call) {
    v1::ListReply reply;
    ASSERT_TRUE(List(channel, &reply).ok());
    ASSERT_EQ(reply.workers_size(), 1);
    EXPECT_EQ(reply.workers(0).id(), secret.text());
  }
  v1::ListReply reply;
  ASSERT_TRUE(List(MakeChannel(server_->address()), &reply).ok());
  EXPECT_EQ(reply.workers_size(), 0);
}

}  // namespace
}  // namespace kiln
