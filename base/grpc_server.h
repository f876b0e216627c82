// A gRPC server with what every daemon of ours has: health service, reflection, its own port, a
// check of callers before their requests are read, limits on what callers take, a clean stop.
#pragma once

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/acceptor.h"
#include "base/caller_check.h"
#include "base/health_service.h"
#include "base/listen.h"
#include "base/net.h"
#include "base/status.h"

namespace kiln {

// Start and Shutdown by the owner; the rest by any
// thread. Services are not owned and outlive the server.
class GrpcServer {
 public:
  struct Options {
    std::string listen = "127.0.0.1:0";  // HOST:PORT; port 0 = any free one
    std::vector<grpc::Service*> services = {};
    int max_request_bytes = 64 << 20;
    int max_reply_bytes = 256 << 20;
    int max_threads = 2'000;  // calls that are handled at once; further ones are refused
    // Asked of each call but health checks, reflection included, before its request is read. Null:
    // everyone is let in.
    CallerCheck check_caller = nullptr;
    size_t max_connections = 0;  // 0: as many as there are descriptors for, at most 20,000
  };

  // Unavailable, ... "cannot listen on 127.0.0.1:80: Permission denied; choose another address with
  // --listen". A port that another process listens on is refused (gRPC alone would share it in
  // silence). Clients are asked for a sign of life every half minute, so that the calls of one that
  // has gone without a word end. Compressed messages are refused: they may be far larger than they
  // look.
  //
  // A connection whose client says nothing for 10 s is closed; strangers, whose calls were not let
  // in, have only so many connections (base/connection_list.h). Requests in memory take as much as
  // eight of the largest; beyond that calls are slowed down or end.
  static StatusOr<std::unique_ptr<GrpcServer>> Start(const Options& options);

  // Shuts down with a short grace if that has not been done.
  ~GrpcServer();

  int port() const { return address_.port; }
  // HOST:PORT with the port that was bound.
  std::string address() const { return address_.ToString(); }

  // What the health service answers; true from the start.
  void SetServing(bool serving);

  // Takes no new calls, lets running ones end for `grace`, then cancels them; returns when all
  // handlers have returned. Handlers that wait must look at ServerContext::IsCancelled.
  void Shutdown(absl::Duration grace);

 private:
  GrpcServer(HostPort address, ListeningSockets listening, const Options& options);
  Status Serve(const Options& options);

  HostPort address_;
  HealthService health_;
  Acceptor acceptor_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::Server> server_;
  bool stopped_ = false;
};

// Sets the gRPC library up for this process: what it prints by itself goes to our log as debug
// lines (every error that matters comes back as a status), and it stays up until the process ends,
// for its own way down can take ten seconds. GrpcServer::Start does it; a pure client calls it at
// the start of main. Any number of times.
void InitGrpc();

}  // namespace kiln
