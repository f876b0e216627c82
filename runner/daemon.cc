#include "runner/daemon.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/file/file.h"
#include "base/hash/unique_id.h"
#include "base/log.h"
#include "base/process/sandbox.h"
#include "base/process/stop_signal.h"
#include "base/process/subprocess.h"
#include "base/server/daemon_program.h"
#include "base/server/net.h"
#include "base/version.h"
#include "device/device_state.h"
#include "rpc/daemon_access.h"
#include "rpc/device_message.h"
#include "rpc/device_state_message.h"
#include "rpc/http/daemon_pages.h"
#include "rpc/http/http_flags.h"
#include "rpc/worker_flags.h"
#include "rpc/worker_modes.h"
#include "rpc/worker_server.h"
#include "runner/canary.h"
#include "runner/child_process.h"
#include "runner/cpu_calls.h"
#include "runner/device_kinds.h"
#include "runner/device_share.h"
#include "runner/free_memory.h"
#include "runner/hours.h"
#include "runner/hours_watch.h"
#include "runner/once.h"
#include "runner/runner_metrics.h"
#include "runner/service.h"

namespace kiln::runner {
namespace {

// Room for an artifact and its reference.
constexpr int kRequestBytes = 160 << 20;

struct Flags : WorkerFlags, HttpFlags {
  std::string device = "cpu";
  int threads = 0;
  int64_t reference_timeout_ms = 180'000;
  bool keep_privileges = false;
  double canary_seconds = 60;
  std::string null_canary_file;
  // Texts of the command line; "" = the runner may use its device always, and all of its time.
  std::string hours, hours_zone, share;
  std::string once;
  bool list = false;
};

std::string CheckDevice(const std::string& device) {
  return std::string(Message(FindDeviceKind(device).status()));
}

std::string CheckHours(const std::string& hours) {
  return std::string(Message(Hours::Parse(hours, absl::UTCTimeZone()).status()));
}

std::string CheckZone(const std::string& zone) {
  return std::string(Message(FindZone(zone).status()));
}

std::string CheckShare(const std::string& share) {
  return std::string(Message(ParseShare(share).status()));
}

// Returns for instance "cpu; cuda: every NVIDIA GPU, ...; or null: ...".
std::string DeviceHelp() {
  std::string help;
  for (const DeviceKind& kind : AllDeviceKinds()) {
    if (&kind == &AllDeviceKinds().back()) help += "or ";
    help += kind.help;
    if (&kind != &AllDeviceKinds().back()) help += "; ";
  }
  return help;
}

// Flags of a runner on a box that serves others.
void AddUseFlags(CLI::App& app, Flags& flags) {
  app.add_option("--hours", flags.hours,
                 "when the device may be used, as in \"mon-fri 20:00-06:00, sat-sun\"; outside of "
                 "these hours the runner is paused, and a trial in hand is stopped when they end "
                 "[always]")
      ->check(CheckHours)
      ->type_name("HOURS");
  app.add_option("--hours-zone", flags.hours_zone,
                 "time zone of --hours, as in Europe/Berlin [that of this machine]")
      ->check(CheckZone)
      ->type_name("ZONE");
  app.add_option("--share", flags.share,
                 "the part of the device's time that trials may take, as in 25%: after each one "
                 "the device rests [100%]")
      ->check(CheckShare)
      ->type_name("PERCENT");
}

void AddFlags(CLI::App& app, Flags& flags) {
  app.description("Checks and times compiled programs on this machine's device.");
  AddWorkerFlags(app, flags, "runner",
                 fmt::format("{}; each further GPU has the next port", kListenHelp));
  AddHttpFlag(app, flags);
  app.add_option("--device", flags.device, DeviceHelp())->check(CheckDevice)->capture_default_str();
  app.add_option("--threads", flags.threads, "cores to run programs on; 0 = all")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  app.add_option("--reference-timeout-ms", flags.reference_timeout_ms,
                 "time limit of one run of a workload's reference program")
      ->check(CLI::Range(int64_t{1}, int64_t{86'400'000}))
      ->capture_default_str();
  app.add_flag("--no-drop-privileges", flags.keep_privileges,
               "where the runner is root, run programs as root, too; by default as nobody (65534)");
  app.add_option("--canary-seconds", flags.canary_seconds,
                 "time from one run of the device's canary program to the next; a device that is "
                 "slower than usual takes no trials until it is well; 0 = no canary")
      ->check(CLI::Range(0.0, 86'400.0))
      ->capture_default_str();
  app.add_option("--null-canary", flags.null_canary_file,
                 "for tests: file with the seconds that the canary of the device null takes")
      ->type_name("FILE");
  AddUseFlags(app, flags);
  AddDaemonFlags(app, flags, fmt::format("{}; one line per GPU", kPortFileHelp));
  app.add_flag("--list", flags.list,
               "print the devices that --device means, one a line: as --device, target, name, "
               "device model and PCI address with tabs between, and end")
      ->configurable(false);
  app.add_option("--once", flags.once,
                 "measure the MeasureRequest in this file (*.txtpb: text, else binary), print the "
                 "reply and end")
      ->configurable(false);
}

int Threads(const Flags& flags) { return flags.threads > 0 ? flags.threads : DefaultCpuThreads(); }

DeviceSettings SettingsOf(const Flags& flags) {
  return {.threads = Threads(flags), .containment = {.drop_privileges = !flags.keep_privileges}};
}

// Returns an id for the worker. It begins with the device's UUID if the device has one, so that
// records say which of several GPUs measured them, also when the runner has long ended.
std::string WorkerIdOf(const v1::WorkerState& state) {
  constexpr std::string_view kUuid = "GPU-";
  const std::string key = state.keys().empty() ? "" : *state.keys().rbegin();
  return key.starts_with(kUuid) ? fmt::format("{}.{}", key, UniqueId(8)) : UniqueId();
}

// Adds the fields that every worker has.
void CompleteState(v1::WorkerState& state, const Flags& flags) {
  state.set_id(NamedWorkerId(WorkerIdOf(state), flags));
  state.set_kind(v1::RUNNER);
  state.set_slots(1);
  state.set_version(std::string(kVersion));
}

StatusOr<std::vector<DeviceDescription>> DescribeDevices(const DeviceKind& kind,
                                                         const Flags& flags) {
  KILN_ASSIGN_OR_RETURN(auto devices, kind.describe(flags.device, SettingsOf(flags)));
  for (DeviceDescription& device : devices) CompleteState(device.state, flags);
  return devices;
}

// Limits of all children of one daemon together: nine tenths of the memory, so that the daemon and
// the machine live on; the threads of two children and their programs, and of a driver.
GroupLimits LimitsOf(const Flags& flags) {
  return {.memory_bytes = FreeMemoryBytes() / 10 * 9, .processes = 4 * Threads(flags) + 512};
}

// Returns the CPU seconds that a trial or reference can take at most on all cores.
int64_t LongestCpuSeconds(const Flags& flags) {
  constexpr int64_t kLongestTrial_s = 3600;
  const int64_t reference_s = flags.reference_timeout_ms / 1000 + 1;
  return Threads(flags) * (kLongestTrial_s + reference_s);
}

StatusOr<DeviceSlotOptions> SlotOptions(const Flags& flags, const DeviceDescription& device,
                                        const std::vector<std::string>& child_args) {
  DeviceSlotOptions options;
  options.device = device.device;
  options.device_name = device.state.device();
  options.announced.assign(device.state.keys().begin(), device.state.keys().end());
  KILN_ASSIGN_OR_RETURN(options.model, DeviceModelOf(device.state));
  options.reference_limit = absl::Milliseconds(flags.reference_timeout_ms);
  options.null_canary_file = flags.null_canary_file;
  KILN_ASSIGN_OR_RETURN(const std::string executable, CurrentExecutable());
  std::vector<std::string>& command = options.child_command;
  command = {executable};
  command.insert(command.end(), child_args.begin(), child_args.end());
  const std::vector<std::string> device_args = {"--device", device.device, "--threads",
                                                fmt::format("{}", Threads(flags))};
  command.insert(command.end(), device_args.begin(), device_args.end());
  command.push_back("--cpu-seconds");
  command.push_back(fmt::format("{}", LongestCpuSeconds(flags)));
  if (flags.keep_privileges) command.push_back("--no-drop-privileges");
  return options;
}

// Finds the sandbox of children, in which their device opens.
StatusOr<SandboxFound> FindSandboxOf(const DeviceKind& kind, const Flags& flags,
                                     const std::vector<std::string>& command) {
  SandboxFound found = FindSandbox(
      {.view = kind.files(), .limits = LimitsOf(flags), .nobody = !flags.keep_privileges});
  const Status opened = FitSandbox(found, [&](const Sandbox& sandbox) {
    std::vector<std::string> check = command;
    const std::vector<std::string> arguments = ArgumentsOf(sandbox);
    check.insert(check.end(), arguments.begin(), arguments.end());
    return ChildProcess::Check(std::move(check));
  });
  if (!opened.ok()) {
    LogWarn("device {} does not open, in a sandbox or without one: {}", flags.device,
            Message(opened));
  }
  if (flags.require_sandbox) KILN_RETURN_IF_ERROR(RequireNoGaps(found));
  return found;
}

// Prepares the slot and the state of a device's worker.
Status PrepareSandbox(const DeviceKind& kind, const Flags& flags, DeviceSlotOptions& slot,
                      v1::WorkerState& state) {
  if (kind.files == nullptr) return OkStatus();
  KILN_ASSIGN_OR_RETURN(const SandboxFound found, FindSandboxOf(kind, flags, slot.child_command));
  LogInfo("sandbox of {}: {}", slot.device, fmt::join(found.applied, ", "));
  for (const std::string& gap : found.gaps) LogWarn("the sandbox has a gap: {}", gap);
  const std::vector<std::string> arguments = ArgumentsOf(found.sandbox);
  slot.child_command.insert(slot.child_command.end(), arguments.begin(), arguments.end());
  state.mutable_sandbox()->Assign(found.applied.begin(), found.applied.end());
  state.mutable_sandbox_gaps()->Assign(found.gaps.begin(), found.gaps.end());
  return OkStatus();
}

// The cache of the driver's compiler, which children of this daemon share. The driver's own folder
// is in a home that children do not see.
StatusOr<TempDir> MakeCudaCache() {
  KILN_ASSIGN_OR_RETURN(TempDir folder, TempDir::Make("kiln-cuda-cache"));
  if (CanBecomeNobody()) KILN_RETURN_IF_ERROR(GiveToNobody(folder.path()));
  setenv("CUDA_CACHE_PATH", folder.path().c_str(), 0);
  return folder;
}

// Returns the address of the index-th worker of this process, given the address of the first.
StatusOr<std::string> NthAddress(HostPort address, size_t index) {
  if (address.port == 0) return address.ToString();
  if (address.port + index > 65535) {
    return InvalidArgument("no port for device {} after {}, choose a lower one", index,
                           address.ToString());
  }
  address.port += static_cast<int>(index);
  return address.ToString();
}

// Returns a reader of the device's state for trials and announcements; null: nothing is known.
std::unique_ptr<device::DeviceStateReader> StateReader(const DeviceKind& kind, const Flags& flags,
                                                       const DeviceDescription& device) {
  constexpr absl::Duration kAge = absl::Milliseconds(100);
  if (kind.state == nullptr) return nullptr;
  auto reader = kind.state(device.device, SettingsOf(flags));
  if (reader == nullptr) return nullptr;
  return device::MakeCachedReader(std::move(reader), kAge, Clock::Real());
}

// Returns null if trials may take all of the device's time.
StatusOr<std::unique_ptr<DeviceShare>> ShareOf(const Flags& flags) {
  if (flags.share.empty()) return std::unique_ptr<DeviceShare>();
  KILN_ASSIGN_OR_RETURN(const double share, ParseShare(flags.share));
  return std::make_unique<DeviceShare>(share, Clock::Real());
}

// One device as a worker. Each has a port of its own, because a request names no device.
class Worker {
 public:
  static StatusOr<std::unique_ptr<Worker>> Start(const Flags& flags, DeviceDescription device,
                                                 size_t index, const FarmAccess& access,
                                                 DaemonPages& pages,
                                                 std::unique_ptr<device::DeviceStateReader> reader,
                                                 DeviceSlotOptions slot_options) {
    WorkerServer::Options options;
    options.access = access;
    options.admission = access.MakeAdmission("runner");
    options.max_request_bytes = kRequestBytes;
    KILN_ASSIGN_OR_RETURN(const HostPort listen, ParseListenAddress(flags.listen));
    KILN_ASSIGN_OR_RETURN(options.listen, NthAddress(listen, index));
    if (!flags.advertise.empty()) {
      KILN_ASSIGN_OR_RETURN(const HostPort advertise, ParseHostPort(flags.advertise));
      KILN_ASSIGN_OR_RETURN(options.advertise, NthAddress(advertise, index));
    }
    options.state = std::move(device.state);
    options.state.set_http_address(pages.address());
    options.ended = pages.calls().Hook();
    KILN_ASSIGN_OR_RETURN(std::unique_ptr<DeviceShare> share, ShareOf(flags));
    std::unique_ptr<Worker> worker(new Worker(options.state.id(), options.admission,
                                              std::move(reader), std::move(share),
                                              std::move(slot_options), pages.metrics()));
    KILN_RETURN_IF_ERROR(worker->LimitUse(flags));
    worker->StartCanary(absl::Seconds(flags.canary_seconds));
    options.service = &worker->service_;
    const std::string described =
        fmt::format("{} ({})", options.state.device(), options.state.target());
    worker->Show(options.state, pages.metrics());
    KILN_ASSIGN_OR_RETURN(worker->server_, WorkerServer::Start(std::move(options)));
    LogInfo("serving {} on {}", described, worker->server_->address());
    return worker;
  }

  int port() const { return server_->port(); }

  void Announce(const std::string& tracker) {
    server_->Announce(tracker, modes_, [this](v1::WorkerState& state) { Complete(state); });
  }

  // A worker ends in these three steps, so that all workers of a process end together.
  void Leave() { server_->Leave(); }
  void Cancel() {
    service_.Stop();
    if (canary_ != nullptr) canary_->Stop();
  }
  void Shutdown() { server_->Shutdown(); }

 private:
  Worker(const std::string& id, const AdmissionControl& admission,
         std::unique_ptr<device::DeviceStateReader> reader, std::unique_ptr<DeviceShare> share,
         DeviceSlotOptions slot_options, Metrics& metrics)
      : device_(slot_options.device),
        state_(std::move(reader)),
        share_(std::move(share)),
        slot_(Equipped(std::move(slot_options))),
        service_(
            slot_, modes_, id, admission,
            [this] {
              if (canary_ != nullptr) canary_->ProbeNow();
            },
            RunnerMetrics(device_, metrics)) {}

  // Shows the device's figures for as long as the worker lives. `fixed` is the part of the state
  // that does not change. Called before the server starts.
  void Show(const v1::WorkerState& fixed, Metrics& metrics) {
    shown_ = metrics.AddCollector([this, fixed](MetricSheet& sheet) {
      v1::WorkerState now = fixed;
      modes_.Fill(&now);
      FillReadings(now);
      CollectDevice(device_, now, slot_.stats(), sheet);
    });
  }

  DeviceSlotOptions Equipped(DeviceSlotOptions options) const {
    options.state = state_.get();
    options.share = share_.get();
    return options;
  }

  // Says of a device that is for others, too, which part of its time and which hours are the
  // runner's. Called before the server starts.
  Status LimitUse(const Flags& flags) {
    if (share_ != nullptr) modes_.Set("share", v1::WORKER_SERVES, share_->Sentence());
    if (flags.hours.empty() && !flags.hours_zone.empty()) {
      return InvalidArgument("--hours-zone {} is of no use without --hours, expected both or none",
                             flags.hours_zone);
    }
    if (flags.hours.empty()) return OkStatus();
    KILN_ASSIGN_OR_RETURN(const absl::TimeZone zone, FindZone(flags.hours_zone));
    KILN_ASSIGN_OR_RETURN(Hours hours, Hours::Parse(flags.hours, zone));
    hours_ = std::make_unique<HoursWatch>(std::move(hours), modes_, Clock::Real());
    return OkStatus();
  }

  // Called before the server starts.
  void StartCanary(absl::Duration period) {
    if (period == absl::ZeroDuration()) return;
    canary_ = std::make_unique<Canary>(
        CanaryOptions{.period = period},
        [this](const std::function<bool()>& cancelled) { return TakeReading(cancelled); },
        [this](const std::string& reason) { NoteHealth(reason); }, Clock::Real());
  }

  // A device that is paused belongs to others.
  StatusOr<double> TakeReading(const std::function<bool()>& cancelled) {
    const EffectiveMode mode = modes_.Effective();
    if (mode.mode == v1::WORKER_PAUSED) return FailedPrecondition("{}", mode.sentence);
    return slot_.TimeCanary(cancelled);
  }

  void NoteHealth(const std::string& reason) {
    constexpr char kCondition[] = "canary";
    if (reason.empty()) {
      modes_.Clear(kCondition);
    } else {
      modes_.Set(kCondition, v1::WORKER_QUARANTINED, "quarantined: " + reason);
    }
  }

  // Sets the fields of the state that change. A device that is paused is let go, within the time
  // from one announcement to the next.
  void Complete(v1::WorkerState& state) {
    if (StopsTrials(modes_.Effective().mode)) slot_.LetGo();
    state.set_trials_done(slot_.stats().trials_done);
    FillReadings(state);
  }

  void FillReadings(v1::WorkerState& state) const {
    if (state_ != nullptr) *state.mutable_device_state() = DeviceStateMessage(state_->Read());
    if (canary_ != nullptr) canary_->Fill(state);
  }

  // The value of --device.
  const std::string device_;
  WorkerModes modes_;
  // Null: the device's state is not known.
  const std::unique_ptr<device::DeviceStateReader> state_;
  // Null: trials may take all of the device's time.
  const std::unique_ptr<DeviceShare> share_;
  DeviceSlot slot_;
  // Null: the device may be used always.
  std::unique_ptr<HoursWatch> hours_;
  // Null: there is no canary. Set before the first call of the service.
  std::unique_ptr<Canary> canary_;
  RunnerService service_;
  std::unique_ptr<WorkerServer> server_;
  // Shows figures of the members above.
  std::shared_ptr<void> shown_;
};

Status Serve(const Flags& flags, const DeviceKind& kind, std::vector<DeviceDescription> devices,
             const std::vector<std::string>& child_args) {
  KILN_RETURN_IF_ERROR(CheckWorkerFlags(flags));
  StopSignal stop;
  std::vector<DeviceSlotOptions> slots;
  for (DeviceDescription& device : devices) {
    KILN_ASSIGN_OR_RETURN(slots.emplace_back(), SlotOptions(flags, device, child_args));
    KILN_RETURN_IF_ERROR(PrepareSandbox(kind, flags, slots.back(), device.state));
  }
  KILN_ASSIGN_OR_RETURN(const FarmAccess access, OpenAccess(flags));
  KILN_ASSIGN_OR_RETURN(const auto pages, DaemonPages::Make({.flags = flags,
                                                             .listen = flags.listen,
                                                             .advertise = flags.advertise,
                                                             .service = "runner",
                                                             .access = access}));
  KILN_RETURN_IF_ERROR(pages->Start());
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<int> ports;
  for (size_t i = 0; i < devices.size(); ++i) {
    slots[i].keys = access.keys();
    auto reader = StateReader(kind, flags, devices[i]);
    KILN_ASSIGN_OR_RETURN(auto worker,
                          Worker::Start(flags, std::move(devices[i]), i, access, *pages,
                                        std::move(reader), std::move(slots[i])));
    ports.push_back(worker->port());
    workers.push_back(std::move(worker));
  }
  KILN_RETURN_IF_ERROR(WritePortFile(flags, ports));
  for (auto& worker : workers) worker->Announce(flags.tracker);
  const int signal = stop.Wait();
  LogInfo("stopping on signal {}", signal);
  for (auto& worker : workers) worker->Leave();
  for (auto& worker : workers) worker->Cancel();
  for (auto& worker : workers) worker->Shutdown();
  return OkStatus();
}

Status Main(const Flags& flags, const std::vector<std::string>& child_args) {
  KILN_ASSIGN_OR_RETURN(const DeviceKind* const kind, FindDeviceKind(flags.device));
  KILN_ASSIGN_OR_RETURN(std::vector<DeviceDescription> devices, DescribeDevices(*kind, flags));
  if (flags.list) {
    for (const DeviceDescription& device : devices) {
      KILN_ASSIGN_OR_RETURN(const device::DeviceModel model, DeviceModelOf(device.state));
      fmt::print("{}\t{}\t{}\t{}\t{}\n", device.device, device.state.target(),
                 device.state.device(), device::PrintDeviceModel(model), device.pci_address);
    }
    return OkStatus();
  }
  KILN_ASSIGN_OR_RETURN(const TempDir cuda_cache, MakeCudaCache());
  if (flags.once.empty()) return Serve(flags, *kind, std::move(devices), child_args);
  KILN_ASSIGN_OR_RETURN(DeviceSlotOptions options, SlotOptions(flags, devices[0], child_args));
  KILN_RETURN_IF_ERROR(PrepareSandbox(*kind, flags, options, devices[0].state));
  DeviceSlot slot(std::move(options));
  return MeasureOnce(flags.once, slot);
}

}  // namespace

std::shared_ptr<void> AddRunnerFlags(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  AddFlags(app, *flags);
  return flags;
}

int RunnerMain(int argc, char** argv, const std::vector<std::string>& child_args) {
  Flags flags;
  CLI::App app("", "kiln_runner");
  AddFlags(app, flags);
  return RunDaemon("runner", app, flags, argc, argv, [&] { return Main(flags, child_args); });
}

}  // namespace kiln::runner
