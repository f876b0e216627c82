#include "tracker/daemon.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "base/hash/mac.h"
#include "base/log.h"
#include "base/process/stop_signal.h"
#include "base/server/daemon_program.h"
#include "base/server/grpc_server.h"
#include "rpc/daemon_access.h"
#include "rpc/http/daemon_pages.h"
#include "rpc/http/http_flags.h"
#include "tracker/figures.h"
#include "tracker/service.h"

namespace kiln::tracker {
namespace {

constexpr absl::Duration kStopGrace = absl::Seconds(2);
// The largest request is a Renew with all leases of a scheduler in full.
constexpr int kRequestBytes = 4 << 20;

struct Flags : DaemonFlags, HttpFlags {
  Flags() { listen = "127.0.0.1:9190"; }

  int64_t deadline_ms = RegistryOptions().deadline_ms;
  int64_t lease_ms = RegistryOptions().default_lease_ms;
};

void AddFlags(CLI::App& app, Flags& flags) {
  app.description("Keeps the list of workers and leases them to schedulers.");
  AddListenFlag(app, flags);
  AddHttpFlag(app, flags);
  app.add_option("--deadline-ms", flags.deadline_ms,
                 "a worker that is silent for so long is removed")
      ->check(CLI::Range(int64_t{100}, int64_t{3'600'000}))
      ->capture_default_str();
  app.add_option("--lease-ms", flags.lease_ms,
                 "a lease whose scheduler is silent for so long ends, unless the scheduler asked "
                 "for another time")
      ->check(CLI::Range(int64_t{1'000}, RegistryOptions().max_lease_ms))
      ->capture_default_str();
  AddDaemonFlags(app, flags);
}

// Shows the registry on the pages while the returned object lives.
std::shared_ptr<void> AddPages(TrackerService& service, DaemonPages& pages) {
  if (pages.port() != nullptr) {
    pages.port()->Handle("/sd", Role::kRead, [&](const HttpRequest&) {
      return HttpReply{.content_type = "application/json",
                       .body = DiscoveryText(service.Look().list, pages.address())};
    });
  }
  return pages.metrics().AddCollector([&service](MetricSheet& sheet) {
    const TrackerService::Figures now = service.Look();
    CollectRegistry(now.list, now.totals, sheet);
  });
}

Status Serve(const Flags& flags) {
  StopSignal stop;
  KILN_ASSIGN_OR_RETURN(const FarmAccess access, OpenAccess(flags));
  TrackerService::Options options;
  options.registry.deadline_ms = flags.deadline_ms;
  options.registry.default_lease_ms = flags.lease_ms;
  options.registry.seal = [key = "kiln lease " + access.SealKey()](std::string_view text) {
    return MacHex(key, text);
  };
  options.admission = access.MakeAdmission("tracker");
  options.revoked = [access] { return access.Revoked(); };
  TrackerService service(options);
  KILN_ASSIGN_OR_RETURN(
      const auto pages,
      DaemonPages::Make(
          {.flags = flags, .listen = flags.listen, .service = "tracker", .access = access}));
  const auto figures = AddPages(service, *pages);
  GrpcServer::Options server_options;
  server_options.listen = flags.listen;
  server_options.services = {&service};
  server_options.max_request_bytes = kRequestBytes;
  server_options.check_caller = options.admission.MakeCallerCheck();
  server_options.check_certificate = options.admission.MakeCertificateCheck();
  server_options.keys = access.keys();
  server_options.ended = pages->calls().Hook();
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<GrpcServer> server,
                        GrpcServer::Start(server_options));
  KILN_RETURN_IF_ERROR(pages->Start());
  KILN_RETURN_IF_ERROR(WritePortFile(flags, {server->port()}));
  LogInfo("serving on {}", server->address());
  const int signal = stop.Wait();
  LogInfo("stopping on signal {}", signal);
  pages->Stop();
  service.Stop();
  server->Shutdown(kStopGrace);
  return OkStatus();
}

}  // namespace

std::shared_ptr<void> AddTrackerFlags(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  AddFlags(app, *flags);
  return flags;
}

int TrackerMain(int argc, char** argv) {
  Flags flags;
  CLI::App app("", "kiln_tracker");
  AddFlags(app, flags);
  return RunDaemon("tracker", app, flags, argc, argv, [&] { return Serve(flags); });
}

}  // namespace kiln::tracker
