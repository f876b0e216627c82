#include "client/this_machine.h"

#include "compiler/codegen/backends/backends.h"
#include "runtime/cuda_driver.h"
#include "runtime/cuda_gpus.h"

namespace kiln::client {

StatusOr<std::string> DeviceOfTarget(std::string_view text) {
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(text));
  return std::string(target.kind->device);
}

StatusOr<target::Target> NameThisCpu(const target::Target& target) {
  return codegen::FindBackend(*target.kind)->Resolve(target);
}

StatusOr<target::Target> NameThisDevice(const target::Target& target) {
  if (target.kind != &target::kCuda || target.GpuArch() > 0) return NameThisCpu(target);
  const auto driver = runtime::LoadCudaDriver();
  const auto gpus = driver.ok() ? runtime::ListCudaGpus(**driver) : driver.status();
  if (!gpus.ok() || gpus->empty()) {
    return FailedPrecondition(
        "target '{}' names no architecture, and there is no GPU here that says which: write "
        "'cuda -arch=sm_90' (kiln doctor on the machine with the GPU shows its capability)",
        target::PrintTarget(target));
  }
  target::Target named = target;
  named.options["arch"] = runtime::ArchOf((*gpus)[0]);
  return named;
}

Status NameThisCpu(v1::JobSpec& spec) {
  for (v1::TaskSpec& task : *spec.mutable_tasks()) {
    KILN_ASSIGN_OR_RETURN(const target::Target asked, target::ParseTarget(task.target()));
    KILN_ASSIGN_OR_RETURN(const target::Target exact, NameThisCpu(asked));
    task.set_target(target::PrintTarget(exact));
  }
  return OkStatus();
}

}  // namespace kiln::client
