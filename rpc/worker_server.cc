#include "rpc/worker_server.h"

#include <utility>

#include "absl/time/time.h"
#include "base/server/net.h"
#include "rpc/reachable_address.h"

namespace kiln {
namespace {

constexpr absl::Duration kStopGrace = absl::Seconds(2);

}  // namespace

StatusOr<std::unique_ptr<WorkerServer>> WorkerServer::Start(Options options) {
  GrpcServer::Options server_options;
  server_options.listen = options.listen;
  server_options.services = {options.service};
  server_options.max_request_bytes = options.max_request_bytes;
  server_options.check_caller = options.admission.MakeCallerCheck();
  server_options.check_certificate = options.admission.MakeCertificateCheck();
  server_options.keys = options.access.keys();
  server_options.ended = std::move(options.ended);
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<GrpcServer> server, GrpcServer::Start(server_options));
  KILN_ASSIGN_OR_RETURN(const HostPort bound, ParseHostPort(server->address()));
  KILN_ASSIGN_OR_RETURN(const HostPort address, ReachableAddress(options.advertise, bound));
  options.state.set_address(address.ToString());
  return std::unique_ptr<WorkerServer>(
      new WorkerServer(std::move(options.state), std::move(options.access), std::move(server)));
}

void WorkerServer::Announce(const std::string& tracker, WorkerModes& modes,
                            std::function<void(v1::WorkerState&)> complete) {
  announcer_ = std::make_unique<WorkerAnnouncer>(
      WorkerAnnouncer::Options{.tracker = tracker,
                               .state =
                                   [this, complete = std::move(complete)] {
                                     v1::WorkerState now = state_;
                                     complete(now);
                                     return now;
                                   },
                               .access = access_,
                               .modes = &modes});
}

void WorkerServer::AnnounceNow() {
  if (announcer_ != nullptr) announcer_->AnnounceNow();
}

void WorkerServer::Leave() {
  if (announcer_ != nullptr) announcer_->Stop();
}

void WorkerServer::Shutdown() { server_->Shutdown(kStopGrace); }

}  // namespace kiln
