#include "base/server/grpc_server.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security_constants.h>
#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/server_interceptor.h>

#include <algorithm>
#include <chrono>
#include <mutex>

#include "absl/synchronization/mutex.h"
#include "base/log.h"
#include "base/process/descriptor_limit.h"

namespace kiln {
namespace {

namespace hooks = grpc::experimental;

constexpr absl::Duration kDestructorGrace = absl::Milliseconds(100);
constexpr int kPingMs = 30'000;
constexpr int kPingTimeoutMs = 20'000;
// Clients may send pings this often.
constexpr int kMinPingIntervalMs = 5'000;
constexpr int kSmallRequestBytes = 8 << 20;
constexpr int kReadBytes = 64 << 10;
// Memory for requests, in requests of the largest size. Calls beyond it are slowed down or refused.
constexpr size_t kRequestsInMemory = 8;
// Time from accepting a connection to its client's first frame.
constexpr int kHandshakeMs = 10'000;
// A scheduler's connection to the tracker may have as many calls as requests may wait there.
constexpr int kCallsOfConnection = 12'000;
constexpr size_t kMaxConnections = 20'000;
// A connection has two descriptors, and half of all descriptors are for other uses.
constexpr int64_t kDescriptorsForConnection = 4;

void LogGrpcLine(gpr_log_func_args* args) { LogDebug("grpc: {}", args->message); }

void SetLimits(const GrpcServer::Options& options, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(options.max_request_bytes);
  builder.SetMaxSendMessageSize(options.max_reply_bytes);
  grpc::ResourceQuota quota("server");
  quota.SetMaxThreads(options.max_threads);
  quota.Resize(kRequestsInMemory * static_cast<size_t>(options.max_request_bytes));
  builder.SetResourceQuota(quota);
  for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  if (options.max_request_bytes <= kSmallRequestBytes) {
    // Windows that grow with the speed of the network would take in many times the largest request,
    // for each request that is too large to be read.
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    builder.AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kReadBytes);
  }
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kCallsOfConnection);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kMinPingIntervalMs);
}

ConnectionList::Limits ConnectionLimits(const GrpcServer::Options& options) {
  ConnectionList::Limits limits;
  const auto room =
      static_cast<size_t>(std::max<int64_t>(DescriptorLimit() / kDescriptorsForConnection, 1));
  limits.most = std::min(kMaxConnections, room);
  if (options.max_connections > 0) limits.most = std::min(limits.most, options.max_connections);
  // Most of the room is for known callers.
  limits.max_unverified = std::min(limits.max_unverified, std::max<size_t>(limits.most / 2, 1));
  return limits;
}

// Health checks need no secret, because a program that asks for them may know nothing else.
CallerCheck ExceptHealth(CallerCheck check) {
  if (check == nullptr) return nullptr;
  return [check = std::move(check)](const CallHead& head) {
    return head.method() == kHealthCheckMethod ? OkStatus() : check(head);
  };
}

// Returns the check, which tells `ended` of the calls that it refuses.
CallerCheck TellRefused(CallerCheck check, CallEnded ended) {
  if (check == nullptr || ended == nullptr) return check;
  return [check = std::move(check), ended = std::move(ended)](const CallHead& head) {
    Status status = check(head);
    if (!status.ok()) ended(head.method(), static_cast<grpc::StatusCode>(status.raw_code()));
    return status;
  };
}

// Tells the acceptor whose calls were let in, and `ended` how they have ended. A watch belongs to
// one call; gRPC owns it.
class CallerWatch : public hooks::Interceptor {
 public:
  CallerWatch(Acceptor& acceptor, const CallEnded& ended, hooks::ServerRpcInfo* call)
      : acceptor_(acceptor), ended_(ended), call_(call) {}

  void Intercept(hooks::InterceptorBatchMethods* methods) override {
    if (ended_ != nullptr &&
        methods->QueryInterceptionHookPoint(hooks::InterceptionHookPoints::PRE_SEND_STATUS)) {
      ended_(call_->method(), methods->GetSendStatus().error_code());
    }
    if (methods->QueryInterceptionHookPoint(
            hooks::InterceptionHookPoints::POST_RECV_INITIAL_METADATA) &&
        call_->method() != kHealthCheckMethod) {
      acceptor_.MarkVerified(call_->server_context()->peer(), [this] { return Certificate(); });
    }
    methods->Proceed();
  }

 private:
  // Returns the caller's certificate in PEM; "" if he has none.
  std::string Certificate() const {
    const auto shown = call_->server_context()->auth_context()->FindPropertyValues(
        GRPC_X509_PEM_CERT_PROPERTY_NAME);
    return shown.empty() ? "" : std::string(shown[0].data(), shown[0].size());
  }

  Acceptor& acceptor_;
  const CallEnded& ended_;
  hooks::ServerRpcInfo* const call_;
};

class CallerWatches : public hooks::ServerInterceptorFactoryInterface {
 public:
  CallerWatches(Acceptor& acceptor, const CallEnded& ended) : acceptor_(acceptor), ended_(ended) {}

  hooks::Interceptor* CreateServerInterceptor(hooks::ServerRpcInfo* call) override {
    // gRPC owns the watch.
    return new CallerWatch(acceptor_, ended_, call);
  }

 private:
  Acceptor& acceptor_;
  const CallEnded& ended_;
};

}  // namespace

void InitGrpc() {
  static std::once_flag once;
  std::call_once(once, [] {
    // Debian builds Abseil without NDEBUG: each lock of gRPC is noted in a graph of all locks, in
    // which cycles are looked for.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    gpr_set_log_function(LogGrpcLine);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    // The library is never shut down. Otherwise the end of the last channel or server would take it
    // down, and would wait up to ten seconds for a thread that polls the sockets of large messages.
    grpc_init();
  });
}

GrpcServer::GrpcServer(HostPort address, ListeningSockets listening, const Options& options)
    : address_(std::move(address)),
      ended_(options.ended),
      acceptor_(std::move(listening), ConnectionLimits(options), options.check_certificate) {}

StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const Options& options) {
  InitGrpc();
  KILN_ASSIGN_OR_RETURN(HostPort address, ParseListenAddress(options.listen));
  StatusOr<ListeningSockets> listening = Listen(address);
  if (!listening.ok()) {
    return Unavailable("cannot listen on {}; choose another address with --listen",
                       Message(listening.status()));
  }
  address.port = listening->port;
  std::unique_ptr<GrpcServer> server(
      new GrpcServer(std::move(address), *std::move(listening), options));
  KILN_RETURN_IF_ERROR(server->Serve(options));
  return server;
}

Status GrpcServer::Serve(const Options& options) {
  grpc::ServerBuilder builder;
  SetLimits(options, builder);
  for (grpc::Service* service : options.services) builder.RegisterService(service);
  builder.RegisterCallbackGenericService(&health_);
  std::vector<std::unique_ptr<hooks::ServerInterceptorFactoryInterface>> watches;
  watches.push_back(std::make_unique<CallerWatches>(acceptor_, ended_));
  builder.experimental().SetInterceptorCreators(std::move(watches));
  connections_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      CheckedCredentials(TellRefused(ExceptHealth(options.check_caller), ended_), options.keys));
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return Internal("gRPC does not start a server");
  return acceptor_.Start([this](UniqueFd connection) {
    hooks::ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.fd = connection.Release();
    connections_->HandleNewConnection(&parameters);
  });
}

GrpcServer::~GrpcServer() { Shutdown(kDestructorGrace); }

void GrpcServer::SetServing(bool serving) { health_.SetServing(serving); }

void GrpcServer::Shutdown(absl::Duration grace) {
  if (stopped_ || server_ == nullptr) return;
  stopped_ = true;
  SetServing(false);
  acceptor_.Stop();
  server_->Shutdown(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(grace));
  server_->Wait();
}

}  // namespace kiln
