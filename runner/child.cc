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
#include "runner/cpu_device.h"
#include "runner/cuda_device.h"
#include "runner/fault_report.h"
#include "runner/wanted_flag.h"
#include "runner/workbench.h"

namespace kiln::runner {
namespace {

constexpr int kWantedFd = 5;
// Of what the device has free at the start.
constexpr int kCacheShare = 4;

StatusOr<std::unique_ptr<Device>> MakeDevice(const std::string& name, int threads) {
  if (name == "cpu") return MakeCpuDevice({.threads = threads});
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

// A program that calls exit would run destructors of this process under its feet, which may hang.
void EndAtOnce(int code, void*) {
  fmt::print(stderr, "the program called exit({})\n", code);
  _exit(code);
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
  std::string device_name = "cpu";
  int threads = 0;
  CLI::App app("The child process of kiln_runner.");
  app.add_option("--device", device_name);
  app.add_option("--threads", threads);
  CLI11_PARSE(app, argc, argv);
  InitLog("runner-child");
  MessagePipe pipe = ServeParent();
  InstallFaultReport();
  const SignalStack signal_stack;
  on_exit(EndAtOnce, nullptr);

  const auto wanted = WantedFlag::Open(UniqueFd(kWantedFd));
  auto device = MakeDevice(device_name, threads);
  Status status = device.ok() ? wanted.status() : device.status();
  if (status.ok()) {
    Workbench bench(**device, (*device)->FreeMemoryBytes() / kCacheShare,
                    [&] { return (*wanted)->wanted(); });
    status = ServeAll(pipe, **device, bench);
  }
  if (!status.ok()) LogError("{}", Message(status));
  // Not through exit(): the destructors that a program registered are not ours to run.
  _exit(status.ok() ? 0 : 1);
}

}  // namespace kiln::runner
