#include "runner/device_kinds.h"

#include <fmt/ranges.h>

#include "device/device_model.h"
#include "rpc/device_message.h"
#include "runner/cpu_description.h"
#include "runner/cpu_target.h"
#include "runner/cuda_device.h"
#include "runner/cuda_gpus.h"
#include "runner/device_files.h"
#include "runner/gpu_model.h"
#include "runner/sandboxed_cpu.h"
#include "runtime/parallel_runtime.h"

namespace kiln::runner {

using runtime::CudaDriver;
using runtime::CudaGpu;
using runtime::IsCudaDevice;
using runtime::LoadCudaDriver;
using runtime::SelectCudaGpus;

namespace {

v1::WorkerState Announced(const std::string& device_name, const std::string& target) {
  v1::WorkerState state;
  state.set_device(device_name);
  state.set_target(target);
  return state;
}

// ---- cpu

StatusOr<std::vector<DeviceDescription>> DescribeCpu(std::string_view,
                                                     const DeviceSettings& settings) {
  const std::string level = CpuLevel();
  DeviceDescription description{"cpu", Announced(CpuModelName(), CpuTarget(settings.threads))};
  description.state.add_keys("llvm");
  description.state.add_keys("cpu");
  description.state.add_keys("llvm/" + level);
  *description.state.mutable_hardware() = CpuHardware(settings.threads);
  *description.state.mutable_device_model() = DeviceMessage(CpuDeviceModel(settings.threads));
  return std::vector{std::move(description)};
}

StatusOr<std::unique_ptr<Device>> OpenCpu(std::string_view, const DeviceSettings& settings) {
  AdoptOrphans();
  return MakeSandboxedCpu(
      {.cpu = {.threads = settings.threads}, .containment = settings.containment});
}

std::unique_ptr<device::DeviceStateReader> CpuState(std::string_view,
                                                    const DeviceSettings& settings) {
  std::vector<int> cores = runtime::AllowedCores();
  if (settings.threads > 0 && static_cast<size_t>(settings.threads) < cores.size()) {
    cores.resize(static_cast<size_t>(settings.threads));
  }
  return device::MakeCpuStateReader(std::move(cores), device::ReadSystemFile());
}

// ---- cuda

StatusOr<std::vector<DeviceDescription>> DescribeCuda(std::string_view device,
                                                      const DeviceSettings&) {
  KILN_ASSIGN_OR_RETURN(const CudaDriver* driver, LoadCudaDriver());
  KILN_ASSIGN_OR_RETURN(const std::vector<CudaGpu> gpus, SelectCudaGpus(*driver, device));
  std::vector<DeviceDescription> devices;
  for (const CudaGpu& gpu : gpus) {
    DeviceDescription& description =
        devices.emplace_back("cuda:" + gpu.uuid, Announced(gpu.name, TargetOf(gpu)));
    description.pci_address = gpu.pci_address;
    for (const std::string& key : KeysOf(gpu)) description.state.add_keys(key);
    *description.state.mutable_hardware() = HardwareOf(gpu);
    KILN_ASSIGN_OR_RETURN(const device::DeviceModel model, ReadGpuModel(*driver, gpu));
    *description.state.mutable_device_model() = DeviceMessage(model);
  }
  return devices;
}

StatusOr<std::unique_ptr<Device>> OpenCuda(std::string_view device, const DeviceSettings&) {
  KILN_ASSIGN_OR_RETURN(const CudaDriver* driver, LoadCudaDriver());
  KILN_ASSIGN_OR_RETURN(const auto gpus, SelectCudaGpus(*driver, device));
  if (gpus.size() != 1) return InvalidArgument("'{}' stands for {} GPUs", device, gpus.size());
  return MakeCudaDevice(*driver, gpus.front());
}

std::unique_ptr<device::DeviceStateReader> GpuState(std::string_view device,
                                                    const DeviceSettings&) {
  return device::OpenGpuStateReader(std::string(device.substr(device.find(':') + 1)));
}

// ---- null

StatusOr<std::vector<DeviceDescription>> DescribeNull(std::string_view,
                                                      const DeviceSettings& settings) {
  DeviceDescription description{"null", Announced("null", "null")};
  description.state.add_keys("null");
  *description.state.mutable_hardware() = CpuHardware(settings.threads);
  description.state.mutable_device_model()->set_name("null");
  return std::vector{std::move(description)};
}

// Returns for instance "cpu, cuda, cuda:... or null".
std::string NamesOf(DeviceKinds kinds) {
  std::vector<std::string> names;
  for (const DeviceKind& kind : kinds) {
    names.emplace_back(kind.name);
    if (kind.is_numbered) names.push_back(fmt::format("{}:...", kind.name));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

constexpr DeviceKind kDeviceKinds[] = {
    {.name = "cpu",
     .help = "cpu",
     .describe = DescribeCpu,
     .open = OpenCpu,
     .state = CpuState,
     .files = CpuFiles},
    {.name = "cuda",
     .help = "cuda: every NVIDIA GPU, cuda:0 or cuda:GPU-...: one of them",
     .is_numbered = true,
     .describe = DescribeCuda,
     .open = OpenCuda,
     .state = GpuState,
     .files = [] { return CudaFiles(); }},
    {.name = "null", .help = "null: runs nothing, costs are made up", .describe = DescribeNull},
};

}  // namespace

DeviceKinds AllDeviceKinds() { return kDeviceKinds; }

StatusOr<const DeviceKind*> FindDeviceKind(std::string_view device, DeviceKinds kinds) {
  const size_t colon = device.find(':');
  for (const DeviceKind& kind : kinds) {
    if (device.substr(0, colon) != kind.name) continue;
    if (colon == std::string_view::npos || kind.is_numbered) return &kind;
  }
  return InvalidArgument("'{}' is no device, expected one of {}", device, NamesOf(kinds));
}

}  // namespace kiln::runner
