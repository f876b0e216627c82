#include "base/grpc_server.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <mutex>

#include "base/log.h"

namespace kiln {
namespace {

constexpr absl::Duration kDestructorGrace = absl::Milliseconds(100);

void LogGrpcLine(gpr_log_func_args* args) { LogDebug("grpc: {}", args->message); }

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
  builder.SetMaxReceiveMessageSize(options.max_message_bytes);
  builder.SetMaxSendMessageSize(options.max_message_bytes);
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
