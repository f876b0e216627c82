#include "runner/daemon.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/file.h"
#include "base/grpc_server.h"
#include "base/log.h"
#include "base/net.h"
#include "base/stop_signal.h"
#include "base/subprocess.h"
#include "base/unique_id.h"
#include "proto/worker_announcer.h"
#include "runner/cpu_description.h"
#include "runner/cpu_device.h"
#include "runner/once.h"
#include "runner/service.h"

namespace kiln::runner {
namespace {

constexpr absl::Duration kStopGrace = absl::Seconds(2);
constexpr std::string_view kVersion = "1";

struct Flags {
  std::string listen = "127.0.0.1:0";
  std::string advertise;
  std::string tracker;
  std::string device = "cpu";
  int threads = 0;
  int64_t reference_timeout_ms = 180'000;
  std::string log_level = "info";
  std::string port_file;
  std::string once;
};

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("--listen", flags.listen, "HOST:PORT to serve on; port 0 = any free one")
      ->capture_default_str();
  app.add_option("--advertise", flags.advertise,
                 "HOST:PORT at which schedulers reach this runner; default: the address it serves "
                 "on, with this machine's name when that is all addresses");
  app.add_option("--tracker", flags.tracker, "HOST:PORT of the tracker to announce to");
  app.add_option("--device", flags.device, "cpu, or null: runs nothing, costs are made up")
      ->check(CLI::IsMember({"cpu", "null"}))
      ->capture_default_str();
  app.add_option("--threads", flags.threads, "cores to run programs on; 0 = all")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  app.add_option("--reference-timeout-ms", flags.reference_timeout_ms,
                 "time limit of one run of a workload's reference program")
      ->check(CLI::Range(int64_t{1}, int64_t{86'400'000}))
      ->capture_default_str();
  app.add_option("--log-level", flags.log_level, "debug, info, warn or error")
      ->capture_default_str();
  app.add_option("--port-file", flags.port_file,
                 "write the port here, as a number and a newline, once it is bound");
  app.add_option("--once", flags.once,
                 "measure the MeasureRequest in this file (*.txtpb: text, else binary), print the "
                 "reply and end");
}

int Threads(const Flags& flags) { return flags.threads > 0 ? flags.threads : DefaultCpuThreads(); }

StatusOr<DeviceSlotOptions> SlotOptions(const Flags& flags,
                                        const std::vector<std::string>& child_args) {
  DeviceSlotOptions options;
  options.device = flags.device;
  options.device_name = flags.device == "null" ? "null" : CpuModelName();
  options.reference_limit = absl::Milliseconds(flags.reference_timeout_ms);
  KILN_ASSIGN_OR_RETURN(const std::string executable, CurrentExecutable());
  std::vector<std::string>& command = options.child_command;
  command = {executable};
  command.insert(command.end(), child_args.begin(), child_args.end());
  const std::vector<std::string> device = {"--device", flags.device, "--threads",
                                           fmt::format("{}", Threads(flags))};
  command.insert(command.end(), device.begin(), device.end());
  return options;
}

// What does not change while the daemon runs.
v1::WorkerState DescribeWorker(const Flags& flags, const std::string& device_name) {
  v1::WorkerState state;
  state.set_id(UniqueId());
  state.set_kind(v1::RUNNER);
  state.set_slots(1);
  state.set_device(device_name);
  state.set_version(std::string(kVersion));
  if (flags.device == "null") {
    state.add_keys("null");
    state.set_target("null");
    *state.mutable_hardware() = CpuHardware(Threads(flags));
    return state;
  }
  const std::string level = CpuLevel();
  state.add_keys("llvm");
  state.add_keys("cpu");
  state.add_keys("llvm/" + level);
  state.set_target(fmt::format("llvm -mcpu={} -num-cores={}", level, Threads(flags)));
  *state.mutable_hardware() = CpuHardware(Threads(flags));
  return state;
}

// An address to listen on may be no address to connect to.
StatusOr<std::string> AdvertisedAddress(const Flags& flags, const GrpcServer& server) {
  if (!flags.advertise.empty()) {
    KILN_ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(flags.advertise));
    return address.ToString();
  }
  KILN_ASSIGN_OR_RETURN(HostPort address, ParseHostPort(server.address()));
  if (address.host == "0.0.0.0" || address.host == "::") address.host = HostName();
  return address.ToString();
}

Status Serve(const Flags& flags, DeviceSlotOptions slot_options) {
  if (!flags.tracker.empty()) KILN_RETURN_IF_ERROR(ParseHostPort(flags.tracker).status());
  StopSignal stop;
  v1::WorkerState state = DescribeWorker(flags, slot_options.device_name);
  DeviceSlot slot(std::move(slot_options));
  RunnerService service(slot, state.id());
  GrpcServer::Options server_options;
  server_options.listen = flags.listen;
  server_options.services = {&service};
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<GrpcServer> server,
                        GrpcServer::Start(server_options));
  KILN_ASSIGN_OR_RETURN(*state.mutable_address(), AdvertisedAddress(flags, *server));
  if (!flags.port_file.empty()) {
    KILN_RETURN_IF_ERROR(WriteFileAtomically(flags.port_file, fmt::format("{}\n", server->port())));
  }
  LogInfo("serving {} ({} threads) on {}", state.device(), state.hardware().num_cores(),
          server->address());
  WorkerAnnouncer announcer(flags.tracker, [&] {
    v1::WorkerState now = state;
    now.set_trials_done(slot.stats().trials_done);
    return now;
  });
  const int signal = stop.Wait();
  LogInfo("stopping on signal {}", signal);
  announcer.Stop();
  service.Stop();
  server->Shutdown(kStopGrace);
  return OkStatus();
}

Status Main(const Flags& flags, const std::vector<std::string>& child_args) {
  KILN_RETURN_IF_ERROR(SetLogLevel(flags.log_level));
  KILN_ASSIGN_OR_RETURN(DeviceSlotOptions options, SlotOptions(flags, child_args));
  if (flags.once.empty()) return Serve(flags, std::move(options));
  DeviceSlot slot(std::move(options));
  return MeasureOnce(flags.once, slot);
}

}  // namespace

int RunnerMain(int argc, char** argv, const std::vector<std::string>& child_args) {
  InitLog("runner");
  Flags flags;
  CLI::App app("Checks and times compiled programs on this machine's device.", "kiln_runner");
  AddFlags(app, flags);
  CLI11_PARSE(app, argc, argv);
  const Status status = Main(flags, child_args);
  if (status.ok()) return 0;
  fmt::print(stderr, "runner: {}\n", Message(status));
  return 1;
}

}  // namespace kiln::runner
