#include "tracker/daemon.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/file.h"
#include "base/grpc_server.h"
#include "base/log.h"
#include "base/stop_signal.h"
#include "tracker/service.h"

namespace kiln::tracker {
namespace {

constexpr absl::Duration kStopGrace = absl::Seconds(2);

struct Flags {
  std::string listen = "127.0.0.1:9190";
  int64_t deadline_ms = RegistryOptions().deadline_ms;
  std::string log_level = "info";
  std::string port_file;
};

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("--listen", flags.listen, "HOST:PORT to serve on; port 0 = any free one")
      ->capture_default_str();
  app.add_option("--deadline-ms", flags.deadline_ms,
                 "a worker that is silent for so long is removed")
      ->check(CLI::Range(int64_t{100}, int64_t{3'600'000}))
      ->capture_default_str();
  app.add_option("--log-level", flags.log_level, "debug, info, warn or error")
      ->capture_default_str();
  app.add_option("--port-file", flags.port_file,
                 "write the port here, as a number and a newline, once it is bound");
}

Status Serve(const Flags& flags) {
  KILN_RETURN_IF_ERROR(SetLogLevel(flags.log_level));
  StopSignal stop;
  TrackerService::Options options;
  options.registry.deadline_ms = flags.deadline_ms;
  TrackerService service(options);
  GrpcServer::Options server_options;
  server_options.listen = flags.listen;
  server_options.services = {&service};
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<GrpcServer> server,
                        GrpcServer::Start(server_options));
  if (!flags.port_file.empty()) {
    KILN_RETURN_IF_ERROR(WriteFileAtomically(flags.port_file, fmt::format("{}\n", server->port())));
  }
  LogInfo("serving on {}", server->address());
  const int signal = stop.Wait();
  LogInfo("stopping on signal {}", signal);
  service.Stop();
  server->Shutdown(kStopGrace);
  return OkStatus();
}

}  // namespace

int TrackerMain(int argc, char** argv) {
  InitLog("tracker");
  Flags flags;
  CLI::App app("Keeps the list of workers and leases them to schedulers.", "kiln_tracker");
  AddFlags(app, flags);
  CLI11_PARSE(app, argc, argv);
  const Status status = Serve(flags);
  if (status.ok()) return 0;
  fmt::print(stderr, "tracker: {}\n", Message(status));
  return 1;
}

}  // namespace kiln::tracker
