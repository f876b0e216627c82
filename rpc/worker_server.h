// A worker's server: its service on a port of its own, and its announcements at the tracker under
// an address that schedulers can reach (rpc/worker_announcer.h).
//
// The owner calls Start, then Announce, Leave and Shutdown; the destructor does what was left out.
// The server runs gRPC's threads and the announcer's. Errors are errors of addresses
// (base/server/grpc_server.h). A tracker that is away is no error.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/server/grpc_server.h"
#include "base/status.h"
#include "rpc/admission_control.h"
#include "rpc/farm_access.h"
#include "rpc/worker_announcer.h"

namespace kiln {

class WorkerServer {
 public:
  struct Options {
    // HOST:PORT; port 0 = any free port.
    std::string listen;
    // HOST:PORT at which schedulers reach the worker. If empty, the address to listen on; if that
    // means all addresses, this machine's name replaces it.
    std::string advertise;
    // Outlives the server.
    grpc::Service* service = nullptr;
    int max_request_bytes = 64 << 20;
    // Keys or secret of the server, and of calls to the tracker.
    FarmAccess access;
    // AdmissionControl of the service, which `access` has made.
    AdmissionControl admission;
    // Told of each call that has ended (base/server/grpc_server.h). Null: nobody is.
    CallEnded ended = nullptr;
    // The state that does not change. The server fills in the address.
    v1::WorkerState state;
  };
  static StatusOr<std::unique_ptr<WorkerServer>> Start(Options options);

  int port() const { return server_->port(); }
  // Address on which the server listens.
  std::string address() const { return server_->address(); }

  // Announces the worker to the tracker at HOST:PORT; "" = there is no tracker. Called once. A
  // thread of this object calls `complete` before each announcement, until Leave: it sets the
  // fields of the state that change. `modes` outlive this object.
  void Announce(const std::string& tracker, WorkerModes& modes,
                std::function<void(v1::WorkerState&)> complete);
  // Announces the worker now, because its state has changed. Changes of its modes need no call.
  void AnnounceNow();

  // Ends the server in two steps, so that all workers of a process end together. Leave tells the
  // tracker, which takes a second at most. Shutdown ends the server; before that, the owner must
  // tell the service to cancel what runs.
  void Leave();
  void Shutdown();

 private:
  WorkerServer(v1::WorkerState state, FarmAccess access, std::unique_ptr<GrpcServer> server)
      : state_(std::move(state)), access_(std::move(access)), server_(std::move(server)) {}

  const v1::WorkerState state_;
  const FarmAccess access_;
  const std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<WorkerAnnouncer> announcer_;
};

}  // namespace kiln
