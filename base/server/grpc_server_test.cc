#include "base/server/grpc_server.h"

#include <arpa/inet.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/file/fd.h"
#include "base/process/descriptor_limit.h"
#include "base/server/grpc_status.h"
#include "base/status_testing.h"
#include "base/testing/echo.grpc.pb.h"

namespace kiln {
namespace {

using base::testing::Echo;
using base::testing::EchoMessage;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class EchoService : public Echo::Service {
 public:
  std::atomic<bool> hanging = false;

 private:
  grpc::Status Say(grpc::ServerContext*, const EchoMessage* request,
                   EchoMessage* response) override {
    if (request->fail_with() != 0) {
      return ToGrpc(Status(static_cast<StatusCode>(request->fail_with()), request->text()));
    }
    *response = *request;
    return grpc::Status::OK;
  }

  grpc::Status Hang(grpc::ServerContext* context, const EchoMessage*, EchoMessage*) override {
    hanging = true;
    while (!context->IsCancelled()) Clock::Real().SleepFor(absl::Milliseconds(5));
    return grpc::Status::CANCELLED;
  }
};

std::string Bytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices)
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

// Debian's Abseil would abort the process where locks are taken in the second order.
TEST(InitGrpcTest, LocksAreNotSearchedForCycles) {
  InitGrpc();
  absl::Mutex a, b;
  for (const auto& [first, second] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    const absl::MutexLock outer(first);
    const absl::MutexLock inner(second);
  }
}

class GrpcServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    StatusOr<std::unique_ptr<GrpcServer>> server = GrpcServer::Start({.services = {&service_}});
    ASSERT_OK(server);
    server_ = std::move(*server);
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    stub_ = Echo::NewStub(channel_);
  }

  grpc::Status Say(const EchoMessage& request, EchoMessage* response) {
    grpc::ClientContext context;
    SetDeadline(context);
    return stub_->Say(&context, request, response);
  }

  static void SetDeadline(grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  }

  // Calls a method whose stub is not among the system's headers: one message out, one back, both as
  // bytes.
  std::string CallRaw(const std::string& method, std::string_view request) {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    SetDeadline(context);
    grpc::CompletionQueue queue;
    void* tag;
    bool ok = true;
    auto next = [&] { ok &= queue.Next(&tag, &ok); };
    auto call = stub.PrepareCall(&context, method, &queue);
    call->StartCall(nullptr);
    next();
    grpc::Slice slice(request.data(), request.size());
    call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
    next();
    grpc::ByteBuffer response;
    call->Read(&response, nullptr);
    next();
    const std::string bytes = ok ? Bytes(response) : "";
    grpc::Status status;
    call->Finish(&status, nullptr);
    queue.Next(&tag, &ok);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return bytes;
  }

  // The answer to HealthCheckRequest{}: field 1, the serving status.
  std::string Health() { return CallRaw("/grpc.health.v1.Health/Check", ""); }

  EchoService service_;
  std::unique_ptr<GrpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<Echo::Stub> stub_;
};

TEST_F(GrpcServerTest, ServesOnThePortItReports) {
  EXPECT_GT(server_->port(), 0);
  EXPECT_EQ(server_->address(), fmt::format("127.0.0.1:{}", server_->port()));
  EchoMessage request, response;
  request.set_text("hello");
  const grpc::Status status = Say(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.text(), "hello");
}

TEST_F(GrpcServerTest, StatusesOfAllCodesArriveWithTheirMessage) {
  for (int code = 1; code <= 16; ++code) {
    EchoMessage request, response;
    request.set_fail_with(code);
    request.set_text("reason: 7 µs\nsecond line");
    EXPECT_THAT(FromGrpc(Say(request, &response)),
                StatusIs(static_cast<StatusCode>(code), request.text()));
  }
}

TEST_F(GrpcServerTest, AHugeErrorMessageArrivesShortened) {
  EchoMessage request, response;
  request.set_fail_with(static_cast<int>(StatusCode::kInvalidArgument));
  request.set_text("begin" + std::string(1 << 20, '\n') + "end");
  EXPECT_THAT(FromGrpc(Say(request, &response)),
              StatusIs(StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("begin"), HasSubstr("bytes left out"), EndsWith("end"))));
}

TEST_F(GrpcServerTest, LargeMessagesPass) {
  EchoMessage request, response;
  // gRPC's own default limit is 4 MiB.
  request.set_text(std::string(20 << 20, 'x'));
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  stub_ = Echo::NewStub(
      grpc::CreateCustomChannel(server_->address(), grpc::InsecureChannelCredentials(), arguments));
  const grpc::Status status = Say(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.text().size(), request.text().size());
}

// The server's memory is bounded; that must not be at the cost of many small clients.
TEST_F(GrpcServerTest, AServerOfSmallRequestsHasRoomForManyClients) {
  ASSERT_OK_AND_ASSIGN(const auto small,
                       GrpcServer::Start({.services = {&service_}, .max_request_bytes = 4 << 20}));
  std::vector<std::unique_ptr<Echo::Stub>> stubs;
  for (int i = 0; i < 1'500; ++i) {
    grpc::ChannelArguments own;
    // Gives the client a connection of its own.
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stubs.push_back(Echo::NewStub(
        grpc::CreateCustomChannel(small->address(), grpc::InsecureChannelCredentials(), own)));
  }
  EchoMessage request, response;
  request.set_text(std::string(1'000, 'x'));
  for (int round = 0; round < 2; ++round) {
    for (const auto& stub : stubs) {
      grpc::ClientContext context;
      SetDeadline(context);
      const grpc::Status status = stub->Say(&context, request, &response);
      ASSERT_TRUE(status.ok()) << status.error_message();
    }
  }
}

TEST_F(GrpcServerTest, ReflectionListsTheServices) {
  // ServerReflectionRequest{list_services: "*"}
  const std::string answer =
      CallRaw("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "\x3a\x01*");
  EXPECT_THAT(answer, HasSubstr("base.testing.Echo"));
}

TEST_F(GrpcServerTest, ReflectionKnowsTheMethods) {
  // ServerReflectionRequest{file_containing_symbol: "base.testing.Echo"}
  const std::string answer =
      CallRaw("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
              "\x22\x11"
              "base.testing.Echo");
  EXPECT_THAT(answer, AllOf(HasSubstr("base/testing/echo.proto"), HasSubstr("Hang")));
}

TEST_F(GrpcServerTest, HealthIsServingUntilSetOtherwise) {
  // SERVING.
  EXPECT_EQ(Health(), "\x08\x01");
  server_->SetServing(false);
  // NOT_SERVING.
  EXPECT_EQ(Health(), "\x08\x02");
  server_->SetServing(true);
  EXPECT_EQ(Health(), "\x08\x01");
}

TEST_F(GrpcServerTest, ATakenPortIsRefusedWithTheReason) {
  EXPECT_THAT(
      GrpcServer::Start({.listen = server_->address()}),
      StatusIs(StatusCode::kUnavailable, fmt::format("cannot listen on {}: Address already in use; "
                                                     "choose another address with --listen",
                                                     server_->address())));
}

TEST_F(GrpcServerTest, BadAddresses) {
  EXPECT_THAT(GrpcServer::Start({.listen = "nowhere"}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("has no port")));
  EXPECT_THAT(GrpcServer::Start({.listen = "192.0.2.1:0"}),
              StatusIs(StatusCode::kUnavailable,
                       HasSubstr("192.0.2.1:0: Cannot assign requested address; choose another")));
  EXPECT_THAT(
      GrpcServer::Start({.listen = "no-such-host.invalid:0"}),
      StatusIs(StatusCode::kUnavailable, HasSubstr("cannot listen on no-such-host.invalid:0: ")));
}

TEST_F(GrpcServerTest, ThePortIsFreeAfterShutdown) {
  const std::string address = server_->address();
  server_->Shutdown(absl::Seconds(1));
  server_->Shutdown(absl::Seconds(1));
  EchoMessage request, response;
  EXPECT_EQ(Say(request, &response).error_code(), grpc::StatusCode::UNAVAILABLE);
  ASSERT_OK(GrpcServer::Start({.listen = address}));
}

TEST_F(GrpcServerTest, ShutdownCancelsWhatHangs) {
  std::jthread caller([&] {
    grpc::ClientContext context;
    SetDeadline(context);
    EchoMessage request, response;
    EXPECT_FALSE(stub_->Hang(&context, request, &response).ok());
  });
  while (!service_.hanging) Clock::Real().SleepFor(absl::Milliseconds(2));
  const double start = Clock::Real().MonotonicSeconds();
  server_->Shutdown(absl::Milliseconds(100));
  EXPECT_LT(Clock::Real().MonotonicSeconds() - start, 10);
}

// A call of raw messages, which a test may leave in any state.
class RawCall {
 public:
  RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method)
      : stub_(channel) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    call_ = stub_.PrepareCall(&context_, method, &queue_);
    call_->StartCall(nullptr);
    Wait();
  }

  // Writes a message, and does not end the call.
  bool Write(size_t bytes) {
    const std::string text(bytes, 'x');
    const grpc::Slice slice(text);
    call_->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    return Wait();
  }

  Status Finish() {
    grpc::Status status;
    call_->Finish(&status, nullptr);
    Wait();
    return FromGrpc(status);
  }

  // In an answer of Watch the first byte is a field's tag, the second the status.
  char ReadHealth() {
    grpc::ByteBuffer answer;
    call_->Read(&answer, nullptr);
    return Wait() ? Bytes(answer).at(1) : '\0';
  }

 private:
  bool Wait() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

std::shared_ptr<grpc::Channel> OwnConnection(const std::string& address) {
  grpc::ChannelArguments own;
  own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), own);
}

Status SayTo(const std::shared_ptr<grpc::Channel>& channel, const std::string& password) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  if (!password.empty()) context.AddMetadata("password", password);
  EchoMessage request, response;
  return FromGrpc(Echo::NewStub(channel)->Say(&context, request, &response));
}

// Connects a socket that says nothing.
UniqueFd SilentConnection(int port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool connected =
      connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  return connected ? std::move(fd) : UniqueFd();
}

// Returns whether the server closes the connection before the deadline.
bool EndsWithin(const UniqueFd& connection, absl::Duration time) {
  const timeval limit = absl::ToTimeval(time);
  setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  char bytes[4096];
  while (true) {
    const ssize_t n = recv(connection.get(), bytes, sizeof(bytes), 0);
    if (n == 0 || (n < 0 && errno != EAGAIN)) return true;
    if (n < 0) return false;
  }
}

class GuardedServerTest : public ::testing::Test {
 protected:
  void Start(GrpcServer::Options options) {
    RaiseDescriptorLimit();
    options.services = {&service_};
    options.check_caller = [](const CallHead& head) {
      if (head.Find("password") == "sesame") return OkStatus();
      return MakeStatus(StatusCode::kUnauthenticated, "{} asks for the password", head.method());
    };
    StatusOr<std::unique_ptr<GrpcServer>> server = GrpcServer::Start(options);
    ASSERT_OK(server);
    server_ = *std::move(server);
  }

  std::string address() const { return server_->address(); }

  EchoService service_;
  std::unique_ptr<GrpcServer> server_;
};

TEST_F(GuardedServerTest, CallersAreCheckedByTheirMetadata) {
  for (const char* listen : {"127.0.0.1:0", "[::1]:0"}) {
    // There is no IPv6 here.
    if (!Listen(*ParseListenAddress(listen)).ok()) continue;
    Start({.listen = listen});
    const auto channel = OwnConnection(address());
    EXPECT_OK(SayTo(channel, "sesame"));
    EXPECT_THAT(SayTo(channel, ""), StatusIs(StatusCode::kUnauthenticated,
                                             "/base.testing.Echo/Say asks for the password"));
    EXPECT_THAT(SayTo(channel, "barley"), StatusIs(StatusCode::kUnauthenticated, testing::_));
    EXPECT_OK(SayTo(channel, "sesame"));
  }
}

// The answer comes although the request has not been sent, because nobody waits for the request.
TEST_F(GuardedServerTest, TheRequestOfAnUnauthenticatedCallerIsNotRead) {
  Start({});
  const auto channel = OwnConnection(address());
  for (const char* method :
       {"/base.testing.Echo/Say", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        "/grpc.health.v1.Health/Watch", "/no.such/Method"}) {
    EXPECT_THAT(
        RawCall(channel, method).Finish(),
        StatusIs(StatusCode::kUnauthenticated, method + std::string(" asks for the password")));
  }
}

TEST_F(GuardedServerTest, HealthIsToldWithoutReadingWhatIsAsked) {
  Start({});
  RawCall call(OwnConnection(address()), "/grpc.health.v1.Health/Check");
  EXPECT_EQ(call.ReadHealth(), 1);
  EXPECT_OK(call.Finish());
}

// Known callers get in, however many strangers are connected.
TEST_F(GuardedServerTest, SilentConnectionsShutNobodyOut) {
  Start({.max_connections = 400});
  const auto known = OwnConnection(address());
  EXPECT_OK(SayTo(known, "sesame"));
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 600; ++i) {
    silent.push_back(SilentConnection(server_->port()));
    if (i % 100 == 99) EXPECT_OK(SayTo(OwnConnection(address()), "sesame"));
  }
  EXPECT_OK(SayTo(known, "sesame"));
  // The oldest connection had to go for later ones.
  EXPECT_TRUE(EndsWithin(silent[0], absl::Seconds(5)));
}

TEST_F(GuardedServerTest, AConnectionThatSaysNothingIsClosed) {
  Start({});
  const UniqueFd silent = SilentConnection(server_->port());
  EXPECT_TRUE(EndsWithin(silent, absl::Seconds(15)));
}

TEST_F(GrpcServerTest, KnownCallersHaveAllConnectionsThereAre) {
  ASSERT_OK_AND_ASSIGN(const auto small,
                       GrpcServer::Start({.services = {&service_}, .max_connections = 8}));
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < 8; ++i) {
    channels.push_back(OwnConnection(small->address()));
    EXPECT_OK(SayTo(channels.back(), ""));
  }
  EXPECT_THAT(SayTo(OwnConnection(small->address()), ""),
              StatusIs(StatusCode::kUnavailable, testing::_));
  for (const auto& channel : channels) EXPECT_OK(SayTo(channel, ""));
  // A connection that closes makes room for another one.
  channels.pop_back();
  Status last;
  for (int i = 0; i < 100; ++i) {
    last = SayTo(OwnConnection(small->address()), "");
    if (last.ok()) break;
    Clock::Real().SleepFor(absl::Milliseconds(20));
  }
  EXPECT_OK(last);
}

TEST_F(GrpcServerTest, WatchersOfHealthSeeChanges) {
  RawCall call(channel_, "/grpc.health.v1.Health/Watch");
  EXPECT_EQ(call.ReadHealth(), 1);
  server_->SetServing(false);
  EXPECT_EQ(call.ReadHealth(), 2);
  server_->SetServing(true);
  EXPECT_EQ(call.ReadHealth(), 1);
  // A watch that stands open does not hold up the end.
  const double start = Clock::Real().MonotonicSeconds();
  server_->Shutdown(absl::Milliseconds(100));
  EXPECT_LT(Clock::Real().MonotonicSeconds() - start, 10);
  EXPECT_EQ(call.ReadHealth(), 2);
  EXPECT_FALSE(call.Finish().ok());
}

// Without the call described at InitGrpc, one of these rounds now and then takes ten seconds.
TEST(GrpcServerStopTest, ComesDownAtOnceAfterALargeMessage) {
  for (int round = 0; round < 8; ++round) {
    const double start = Clock::Real().MonotonicSeconds();
    {
      EchoService service;
      ASSERT_OK_AND_ASSIGN(auto server, GrpcServer::Start({.services = {&service}}));
      grpc::ChannelArguments arguments;
      arguments.SetMaxReceiveMessageSize(-1);
      auto stub = Echo::NewStub(grpc::CreateCustomChannel(
          server->address(), grpc::InsecureChannelCredentials(), arguments));
      grpc::ClientContext context;
      EchoMessage request, response;
      request.set_text(std::string(20 << 20, 'x'));
      EXPECT_TRUE(stub->Say(&context, request, &response).ok());
    }
    EXPECT_LT(Clock::Real().MonotonicSeconds() - start, 8);
  }
}

TEST(GrpcStatusTest, BothWays) {
  EXPECT_TRUE(ToGrpc(OkStatus()).ok());
  EXPECT_OK(FromGrpc(grpc::Status::OK));
  EXPECT_EQ(ToGrpc(NotFound("no {}", "job")).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(FromGrpc(ToGrpc(DataLoss("bits"))), StatusIs(StatusCode::kDataLoss, "bits"));
}

}  // namespace
}  // namespace kiln
