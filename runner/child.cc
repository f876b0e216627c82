#include "runner/child.h"

#include <stdlib.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <string>

#include "base/fd.h"
#include "base/log.h"
#include "base/message_child.h"
#include "base/subprocess.h"
#include "base/utf8.h"
#include "runner/containment.h"
#include "runner/cuda_device.h"
#include "runner/fault_report.h"
#include "runner/sandboxed_cpu.h"
#include "runner/wanted_flag.h"
#include "runner/workbench.h"

namespace kiln::runner {
namespace {

constexpr int kWantedFd = 5;
// Of what the device has free at the start.
constexpr int kCacheShare = 4;

struct Flags {
  std::string device = "cpu";
  int threads = 0;
  ContainmentOptions containment;
};

StatusOr<std::unique_ptr<Device>> MakeDevice(const Flags& flags) {
  const std::string& name = flags.device;
  if (name == "cpu") {
    AdoptOrphans();
    return MakeSandboxedCpu({.cpu = {.threads = flags.threads}, .containment = flags.containment});
  }
  if (!IsCudaDevice(name)) {
    return InvalidArgument("unknown device '{}', expected cpu or cuda:GPU-...", name);
  }
  KILN_ASSIGN_OR_RETURN(const CudaDriver* driver, LoadCudaDriver());
  KILN_ASSIGN_OR_RETURN(const auto gpus, SelectCudaGpus(*driver, name));
  if (gpus.size() != 1) return InvalidArgument("'{}' stands for {} GPUs", name, gpus.size());
  return MakeCudaDevice(*driver, gpus.front());
}

wire::ChildDone Serve(Workbench& bench, const wire::ChildRequest& request,
                      const Workbench::OnPhase& on_phase) {
  wire::ChildDone done;
  if (request.has_trial()) {
    *done.mutable_result() = bench.RunTrial(request.trial(), on_phase);
    return done;
  }
  const auto reference = bench.RunReference(request.reference(), on_phase);
  if (reference.ok()) {
    done.set_reference_cost_s(reference->cost_s);
    done.set_reference_unchecked(ValidUtf8(reference->unchecked));
  } else {
    done.set_reference_error(ValidUtf8(Message(reference.status())));
  }
  return done;
}

// Until the daemon closes the pipe, or the device is lost.
Status ServeAll(MessagePipe& pipe, Device& device, Workbench& bench) {
  while (true) {
    const auto bytes = pipe.Read();
    if (!bytes.ok()) return IsEndOfPipe(bytes.status()) ? OkStatus() : bytes.status();
    wire::ChildRequest request;
    if (!request.ParseFromString(*bytes)) return DataLoss("the daemon sent no ChildRequest");
    const auto send = [&](const wire::ChildEvent& event) {
      return pipe.Write(event.SerializeAsString());
    };
    const auto on_phase = [&](wire::Phase phase) {
      wire::ChildEvent event;
      event.set_phase(phase);
      // A failure shows again at the end; here it would only hide what the program does.
      (void)send(event);
    };
    wire::ChildEvent event;
    *event.mutable_done() = Serve(bench, request, on_phase);
    const bool lost = !device.Usable();
    event.mutable_done()->set_device_lost(lost);
    KILN_RETURN_IF_ERROR(send(event));
    if (lost) return OkStatus();
  }
}

}  // namespace

int RunnerChildMain(int argc, char** argv) {
  DieWithParent();
  Flags flags;
  bool keep_privileges = false;
  CLI::App app("The child process of kiln_runner.");
  app.add_option("--device", flags.device);
  app.add_option("--threads", flags.threads);
  app.add_option("--cpu-seconds", flags.containment.cpu_s);
  app.add_flag("--no-drop-privileges", keep_privileges);
  CLI11_PARSE(app, argc, argv);
  flags.containment.drop_privileges = !keep_privileges;
  InitLog("runner-child");
  MessagePipe pipe = ServeParent();
  InstallFaultReport();
  const SignalStack signal_stack;

  const auto wanted = WantedFlag::Open(UniqueFd(kWantedFd));
  auto device = MakeDevice(flags);
  Status status = device.ok() ? wanted.status() : device.status();
  if (status.ok()) {
    Workbench bench(**device, (*device)->FreeMemoryBytes() / kCacheShare,
                    [&] { return (*wanted)->wanted(); });
    status = ServeAll(pipe, **device, bench);
  }
  if (!status.ok()) LogError("{}", Message(status));
  // Not through exit(): the driver's destructors may hang on a lost device.
  _exit(status.ok() ? 0 : 1);
}

}  // namespace kiln::runner
