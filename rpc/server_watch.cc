#include "rpc/server_watch.h"

#include <chrono>
#include <utility>

#include "base/keys/role.h"
#include "base/log.h"
#include "base/server/net.h"
#include "base/server/own_connections.h"

namespace kiln {

ServerWatch::~ServerWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ServerWatch::AddAddress(const std::string& address) {
  const StatusOr<HostPort> parsed = ParseHostPort(address);
  // gRPC says what is wrong with it.
  if (!parsed.ok()) return;
  const std::lock_guard lock(mutex_);
  ports_[parsed->host].insert(parsed->port);
}

Status ServerWatch::Accept(std::string_view host, std::string_view certificate) {
  KILN_RETURN_IF_ERROR(Check(certificate));
  const std::lock_guard lock(mutex_);
  accepted_[std::string(certificate)].emplace(host);
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  return OkStatus();
}

Status ServerWatch::Check(std::string_view certificate) {
  KILN_ASSIGN_OR_RETURN(const Identity server, members_.Check(certificate));
  if (MayServe(server.role)) return OkStatus();
  return MakeStatus(StatusCode::kUnauthenticated,
                    "the server has the certificate of {} with the role {}, expected a daemon's: "
                    "`kiln keys issue NAME --role work`",
                    server.name, RoleName(server.role));
}

void ServerWatch::Run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, absl::ToChronoMilliseconds(kEvery), [&] { return stopping_; })) {
    lock.unlock();
    CloseRefused();
    lock.lock();
  }
}

// A connection that is being made meanwhile is judged by Accept, or at the next time.
void ServerWatch::CloseRefused() {
  std::map<std::string, std::set<std::string>> accepted;
  std::map<std::string, std::set<int>> ports;
  {
    const std::lock_guard lock(mutex_);
    accepted = accepted_;
    ports = ports_;
  }
  for (const auto& [certificate, hosts] : accepted) {
    const Status holds = Check(certificate);
    if (holds.ok()) continue;
    {
      // A host that shows the certificate again is refused.
      const std::lock_guard lock(mutex_);
      accepted_.erase(certificate);
    }
    for (const std::string& host : hosts) {
      const int closed = ShutDownConnections(host, ports[host]);
      if (closed > 0) LogInfo("closing {} connections to {}: {}", closed, host, Message(holds));
    }
  }
}

}  // namespace kiln
