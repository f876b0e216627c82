// A gRPC server with the parts that every daemon of ours has: health service, reflection, a port of
// its own, a check of callers before their requests are read, limits on what callers take, a clean
// stop.
#pragma once

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/status.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/server/acceptor.h"
#include "base/server/caller_check.h"
#include "base/server/health_service.h"
#include "base/server/listen.h"
#include "base/server/net.h"
#include "base/status.h"

namespace kiln {

// Told of a call that has ended, or that was refused before its request was read: its method,
// "/kiln.v1.Tracker/List", which may be a stranger's text, and its status. Threads of gRPC call it,
// many at once, so it must not wait.
using CallEnded = std::function<void(std::string_view method, grpc::StatusCode status)>;

// The owner calls Start and Shutdown; any thread may call the rest. Services are not owned and
// outlive the server.
class GrpcServer {
 public:
  struct Options {
    // HOST:PORT; port 0 = any free port.
    std::string listen = "127.0.0.1:0";
    std::vector<grpc::Service*> services = {};
    int max_request_bytes = 64 << 20;
    int max_reply_bytes = 256 << 20;
    // Calls that are handled at once; further calls are refused.
    int max_threads = 2'000;
    // Checks each call but health checks, calls of reflection included, before its request is read.
    // Null: every caller is let in.
    CallerCheck check_caller = nullptr;
    // Connections are closed, and their calls end, when the certificate that their client has shown
    // fails this check. Null: certificates are checked when calls begin, and not again.
    CertificateCheck check_certificate = nullptr;
    // The server's certificate; connections are of TLS. Null: plain text.
    std::shared_ptr<LiveKeys> keys = nullptr;
    // Null: nobody is told.
    CallEnded ended = nullptr;
    // 0 = as many as there are descriptors for, at most 20,000.
    size_t max_connections = 0;
  };

  // Starts a server. Errors are for instance Unavailable "cannot listen on 127.0.0.1:80: Permission
  // denied; choose another address with --listen". A port that another process listens on is
  // refused; gRPC alone would share it in silence. Clients are pinged every half minute, so that
  // the calls of a client that has vanished end. Compressed messages are refused, because they may
  // be far larger than they look.
  //
  // A connection whose client says nothing for 10 s is closed. Strangers, whose calls were not let
  // in, have a limited number of connections (base/server/connection_list.h). Requests take as much
  // memory as eight of the largest; beyond that, calls are slowed down or end.
  static StatusOr<std::unique_ptr<GrpcServer>> Start(const Options& options);

  // Shuts down with a short grace unless Shutdown was called.
  ~GrpcServer();

  int port() const { return address_.port; }
  // Returns HOST:PORT with the port that was bound.
  std::string address() const { return address_.ToString(); }

  // Sets the answer of the health service; true from the start.
  void SetServing(bool serving);

  // Takes no new calls, lets running calls end for `grace`, then cancels them. Returns when all
  // handlers have returned. Handlers that wait must look at ServerContext::IsCancelled.
  void Shutdown(absl::Duration grace);

 private:
  GrpcServer(HostPort address, ListeningSockets listening, const Options& options);
  Status Serve(const Options& options);

  HostPort address_;
  const CallEnded ended_;
  HealthService health_;
  Acceptor acceptor_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::Server> server_;
  bool stopped_ = false;
};

// Sets the gRPC library up for this process. Messages that the library prints go to our log as
// debug lines; every error that matters comes back as a status. The library stays up until the
// process ends, because shutting it down can take ten seconds. GrpcServer::Start calls this; a pure
// client calls it at the start of main. Further calls do nothing.
void InitGrpc();

}  // namespace kiln
