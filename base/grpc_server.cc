#include "base/grpc_server.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <mutex>

#include "base/log.h"

namespace kiln {
namespace {

constexpr absl::Duration kDestructorGrace = absl::Milliseconds(100);
constexpr int kPingMs = 30'000;
constexpr int kPingTimeoutMs = 20'000;
// Clients may ask for a sign of life this often.
constexpr int kMostFrequentPingMs = 5'000;
constexpr int kSmallRequestBytes = 8 << 20;
constexpr int kReadBytes = 64 << 10;
// Of the largest ones at once; calls beyond it are slowed down, or refused.
constexpr int kRequestsInMemory = 8;

void LogGrpcLine(gpr_log_func_args* args) { LogDebug("grpc: {}", args->message); }

void SetLimits(const GrpcServer::Options& options, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(options.max_request_bytes);
  builder.SetMaxSendMessageSize(options.max_reply_bytes);
  grpc::ResourceQuota quota("server");
  quota.SetMaxThreads(options.max_threads);
  if (options.max_request_bytes <= kSmallRequestBytes) {
    quota.Resize(static_cast<size_t>(kRequestsInMemory) * options.max_request_bytes);
  }
  builder.SetResourceQuota(quota);
  for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  if (options.max_request_bytes <= kSmallRequestBytes) {
    // Windows that grow with the speed of the network would take in, of each request that is too
    // large to be read, many times what the largest one may have.
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    builder.AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kReadBytes);
  }
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kMostFrequentPingMs);
}

}  // namespace

void InitGrpc() {
  static std::once_flag once;
  std::call_once(once, [] {
    gpr_set_log_function(LogGrpcLine);
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    // Never undone. Otherwise the end of the last channel or server takes the library down, and
    // with it waits up to ten seconds for a thread that polls the sockets of large messages.
    grpc_init();
  });
}

StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const Options& options) {
  InitGrpc();
  KILN_ASSIGN_OR_RETURN(HostPort address, ParseListenAddress(options.listen));
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  SetLimits(options, builder);
  int port = 0;
  builder.AddListeningPort(
      address.ToString(),
      options.credentials ? options.credentials : grpc::InsecureServerCredentials(), &port);
  for (grpc::Service* service : options.services) builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    // gRPC does not say why; a bind of our own does.
    const Status reason = CheckCanListen(address);
    return Unavailable("cannot listen on {}; choose another address with --listen",
                       reason.ok() ? address.ToString() : std::string(Message(reason)));
  }
  address.port = port;
  return std::unique_ptr<GrpcServer>(new GrpcServer(std::move(server), std::move(address)));
}

GrpcServer::~GrpcServer() { Shutdown(kDestructorGrace); }

void GrpcServer::SetServing(bool serving) {
  server_->GetHealthCheckService()->SetServingStatus(serving);
}

void GrpcServer::Shutdown(absl::Duration grace) {
  if (stopped_) return;
  stopped_ = true;
  SetServing(false);
  server_->Shutdown(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(grace));
  server_->Wait();
}

}  // namespace kiln
