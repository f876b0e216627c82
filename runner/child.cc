#include "runner/child.h"

#include <stdlib.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <utility>

#include "base/file/fd.h"
#include "base/log.h"
#include "base/process/message_child.h"
#include "base/process/process_guard.h"
#include "base/process/sandbox.h"
#include "base/process/stop_signals_of_children.h"
#include "base/process/subprocess.h"
#include "base/text/utf8.h"
#include "runner/bench.h"
#include "runner/device_kinds.h"
#include "runner/fault_report.h"
#include "runner/reference_run.h"
#include "runner/trial_run.h"
#include "runner/yield_flag.h"

namespace kiln::runner {
namespace {

constexpr int kYieldFd = 5;
// The cache gets this part (1 / kCacheShare) of the device's free memory at the start.
constexpr int kCacheShare = 4;

struct Flags {
  std::string device = "cpu";
  DeviceSettings settings;
};

StatusOr<std::unique_ptr<Device>> OpenDevice(const Flags& flags) {
  KILN_ASSIGN_OR_RETURN(const DeviceKind* const kind, FindDeviceKind(flags.device));
  if (kind->open == nullptr)
    return InvalidArgument("device {} runs no programs, and has no children", flags.device);
  return kind->open(flags.device, flags.settings);
}

wire::ChildDone Serve(const Bench& bench, const wire::ChildRequest& request, UniqueFd outputs,
                      const std::function<bool()>& is_wanted, const OnPhase& on_phase) {
  wire::ChildDone done;
  if (request.has_trial()) {
    *done.mutable_result() =
        RunTrial(bench, request.trial(), std::move(outputs), is_wanted, on_phase);
    return done;
  }
  if (request.has_canary()) {
    const auto canary_s = bench.device.TimeCanary();
    if (canary_s.ok()) {
      done.set_canary_s(*canary_s);
    } else {
      done.set_canary_error(ValidUtf8(Message(canary_s.status())));
    }
    return done;
  }
  const auto reference = RunReference(bench, request.reference(), outputs, on_phase);
  if (reference.ok()) {
    done.set_reference_cost_s(reference->cost_s);
    done.set_reference_unchecked(ValidUtf8(reference->unchecked));
  } else {
    done.set_reference_error(ValidUtf8(Message(reference.status())));
  }
  return done;
}

// Serves requests until the daemon closes the pipe, or the device is lost.
Status ServeAll(MessagePipe& pipe, const Bench& bench, const std::function<bool()>& is_wanted) {
  while (true) {
    // File for the outputs of a reference.
    UniqueFd outputs;
    const auto bytes = pipe.Read(absl::InfiniteDuration(), &outputs);
    if (!bytes.ok()) return IsEndOfPipe(bytes.status()) ? OkStatus() : bytes.status();
    wire::ChildRequest request;
    if (!request.ParseFromString(*bytes)) return DataLoss("the daemon sent no ChildRequest");
    const auto send = [&](const wire::ChildEvent& event) {
      return pipe.Write(event.SerializeAsString());
    };
    const auto on_phase = [&](wire::Phase phase) {
      wire::ChildEvent event;
      event.set_phase(phase);
      // A failure to send shows again at the end; reported here, it would only hide what the
      // program does.
      (void)send(event);
    };
    wire::ChildEvent event;
    *event.mutable_done() = Serve(bench, request, std::move(outputs), is_wanted, on_phase);
    const bool lost = !bench.device.Usable();
    event.mutable_done()->set_device_lost(lost);
    KILN_RETURN_IF_ERROR(send(event));
    if (lost) return OkStatus();
  }
}

}  // namespace

int RunnerChildMain(int argc, char** argv) {
  DieWithParent();
  LeaveStopSignalsToParent();
  SetOomScore(kOomScoreOfBuild);
  Flags flags;
  Sandbox sandbox;
  bool check = false;
  bool keep_privileges = false;
  CLI::App app("The child process of kiln_runner.");
  app.add_option("--device", flags.device);
  app.add_option("--threads", flags.settings.threads);
  app.add_option("--cpu-seconds", flags.settings.containment.cpu_s);
  app.add_flag("--no-drop-privileges", keep_privileges);
  app.add_flag("--check", check);
  AddSandboxOptions(app, sandbox);
  CLI11_PARSE(app, argc, argv);
  flags.settings.containment.drop_privileges = !keep_privileges;
  InitLog("runner-child");
  MessagePipe pipe = ServeParent();
  if (const Status entered = EnterSandbox(std::move(sandbox)); !entered.ok()) {
    LogError("cannot enter the sandbox: {}", Message(entered));
    return 1;
  }
  HideProcess();
  InstallFaultReport();
  const SignalStack signal_stack;

  const auto wanted = YieldFlag::Open(UniqueFd(kYieldFd));
  auto device = OpenDevice(flags);
  if (check) {
    if (!device.ok()) LogError("{}", Message(device.status()));
    _exit(device.ok() ? 0 : 1);
  }
  Status status = device.ok() ? wanted.status() : device.status();
  if (status.ok()) {
    BufferCache cache((*device)->FreeMemoryBytes() / kCacheShare);
    status = ServeAll(pipe, {**device, cache}, [&] { return (*wanted)->wanted(); });
  }
  if (!status.ok()) LogError("{}", Message(status));
  // The child does not end through exit(), because the driver's destructors may hang on a lost
  // device.
  _exit(status.ok() ? 0 : 1);
}

}  // namespace kiln::runner
