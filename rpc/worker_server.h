// A worker as the world sees it: its service on a port of its own, and its announcements at the
// tracker under an address that schedulers can reach (rpc/worker_announcer.h).
//
// Start, then Announce, Leave and Shutdown, all by the owner; the destructor does what is left.
// Runs gRPC's threads and the announcer's. Errors are those of addresses (base/grpc_server.h); a
// tracker that is away is none.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/grpc_server.h"
#include "base/secret.h"
#include "base/status.h"
#include "rpc/door.h"
#include "rpc/worker_announcer.h"

namespace kiln {

class WorkerServer {
 public:
  struct Options {
    std::string listen;  // HOST:PORT; port 0 = any free one
    // HOST:PORT at which schedulers reach the worker; empty: where it listens, with this machine's
    // name when that is all addresses.
    std::string advertise;
    grpc::Service* service = nullptr;  // outlives this
    int max_request_bytes = 64 << 20;
    Secret secret;          // for the tracker
    Door door;              // of the service
    v1::WorkerState state;  // what does not change; the address is filled in
  };
  static StatusOr<std::unique_ptr<WorkerServer>> Start(Options options);

  int port() const { return server_->port(); }
  std::string address() const { return server_->address(); }  // where it listens

  // Once, to the tracker at HOST:PORT; "" = there is none. `trials_done` is called by a thread of
  // this object until Leave.
  void Announce(const std::string& tracker, std::function<uint64_t()> trials_done);

  // The end, in two steps, so that all workers of a process end together: tells the tracker (takes
  // a second at most); ends the server, for which the service must have been told before to cancel
  // what runs.
  void Leave();
  void Shutdown();

 private:
  WorkerServer(v1::WorkerState state, Secret secret, std::unique_ptr<GrpcServer> server)
      : state_(std::move(state)), secret_(std::move(secret)), server_(std::move(server)) {}

  const v1::WorkerState state_;
  const Secret secret_;
  const std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<WorkerAnnouncer> announcer_;
};

}  // namespace kiln
