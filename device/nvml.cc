#include "device/nvml.h"

#include <dlfcn.h>

namespace kiln::device {
namespace {

// Returns whether the library has the function.
template <typename Function>
bool Find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

std::unique_ptr<Nvml> Nvml::Open() {
  std::unique_ptr<Nvml> nvml(new Nvml());
  void* const library = nvml->library_ = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  NvmlCalls& calls = nvml->calls_;
  // The first name of the reasons is that of drivers since 2023.
  const bool complete =
      Find(library, "nvmlInit_v2", init) && Find(library, "nvmlShutdown", shutdown) &&
      Find(library, "nvmlDeviceGetCount_v2", calls.count) &&
      Find(library, "nvmlDeviceGetHandleByIndex_v2", calls.handle_by_index) &&
      Find(library, "nvmlDeviceGetHandleByUUID", calls.handle_by_uuid) &&
      Find(library, "nvmlDeviceGetComputeRunningProcesses_v3", calls.processes) &&
      Find(library, "nvmlDeviceGetUtilizationRates", calls.utilization) &&
      Find(library, "nvmlDeviceGetClockInfo", calls.clock) &&
      Find(library, "nvmlDeviceGetTemperature", calls.temperature) &&
      Find(library, "nvmlDeviceGetPowerUsage", calls.power) &&
      (Find(library, "nvmlDeviceGetCurrentClocksEventReasons", calls.throttle_reasons) ||
       Find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", calls.throttle_reasons)) &&
      Find(library, "nvmlSystemGetDriverVersion", calls.driver_version);
  if (!complete || init() != kNvmlSuccess) return nullptr;
  nvml->shutdown_ = shutdown;
  return nvml;
}

Nvml::~Nvml() {
  if (shutdown_ != nullptr) shutdown_();
  if (library_ != nullptr) dlclose(library_);
}

}  // namespace kiln::device
