#include "device/gpu_load.h"

#include <fmt/format.h>

#include "device/nvml.h"

namespace kiln::device {
namespace {

std::string TextOf(const NvmlCalls& nvml, unsigned index) {
  NvmlCalls::Handle gpu = nullptr;
  NvmlCalls::Utilization used{};
  unsigned processes = 0;
  if (nvml.handle_by_index(index, &gpu) != kNvmlSuccess ||
      nvml.utilization(gpu, &used) != kNvmlSuccess) {
    return {};
  }
  // Without room for any process, the call says how many there are.
  const int listed = nvml.processes(gpu, &processes, nullptr);
  if (listed != kNvmlSuccess && listed != kNvmlInsufficientSize) return {};
  return fmt::format("GPU {}: {} process{}, {}% busy", index,
                     processes == 0 ? "no" : fmt::format("{}", processes),
                     processes > 1 ? "es" : "", used.gpu);
}

}  // namespace

std::string GpuLoadText() {
  const std::unique_ptr<Nvml> nvml = Nvml::Open();
  unsigned gpus = 0;
  if (nvml == nullptr || nvml->calls().count(&gpus) != kNvmlSuccess) return {};
  std::string text;
  for (unsigned i = 0; i < gpus; ++i) {
    const std::string one = TextOf(nvml->calls(), i);
    if (!one.empty()) text += (text.empty() ? "" : "; ") + one;
  }
  return text;
}

}  // namespace kiln::device
