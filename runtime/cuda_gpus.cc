#include "runtime/cuda_gpus.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace kiln::runtime {
namespace {

constexpr std::string_view kCuda = "cuda";

std::string UuidText(const CuUuid& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid.bytes[i]);
  }
  return text;
}

// Returns "" if the driver does not say.
std::string PciAddress(const CudaDriver& driver, CuDeviceHandle handle) {
  int domain = 0, bus = 0, device = 0;
  for (const auto& [which, value] :
       {std::pair{kCuPciDomain, &domain}, {kCuPciBus, &bus}, {kCuPciDevice, &device}}) {
    if (driver.DeviceGetAttribute(value, which, handle) != 0) return "";
  }
  return fmt::format("{:04x}:{:02x}:{:02x}.0", domain, bus, device);
}

StatusOr<CudaGpu> Describe(const CudaDriver& driver, int ordinal) {
  CudaGpu gpu;
  gpu.ordinal = ordinal;
  const std::string what = fmt::format("read the properties of GPU {}", ordinal);
  KILN_RETURN_IF_ERROR(driver.Check(driver.DeviceGet(&gpu.handle, ordinal), what));
  char name[256] = {};
  KILN_RETURN_IF_ERROR(
      driver.Check(driver.DeviceGetName(name, sizeof(name) - 1, gpu.handle), what));
  gpu.name = name;
  CuUuid uuid{};
  KILN_RETURN_IF_ERROR(driver.Check(driver.DeviceGetUuid(&uuid, gpu.handle), what));
  gpu.uuid = UuidText(uuid);
  gpu.pci_address = PciAddress(driver, gpu.handle);
  size_t memory_bytes = 0;
  KILN_RETURN_IF_ERROR(driver.Check(driver.DeviceTotalMem(&memory_bytes, gpu.handle), what));
  gpu.memory_bytes = static_cast<int64_t>(memory_bytes);
  Status status;
  const auto attribute = [&](CuDeviceAttribute which) {
    int value = 0;
    if (status.ok()) {
      status = driver.Check(driver.DeviceGetAttribute(&value, which, gpu.handle), what);
    }
    return value;
  };
  gpu.major = attribute(kCuComputeCapabilityMajor);
  gpu.minor = attribute(kCuComputeCapabilityMinor);
  gpu.multiprocessors = attribute(kCuMultiprocessorCount);
  gpu.warp_size = attribute(kCuWarpSize);
  gpu.max_threads_per_block = attribute(kCuMaxThreadsPerBlock);
  gpu.max_registers_per_block = attribute(kCuMaxRegistersPerBlock);
  gpu.max_shared_bytes_per_block = attribute(kCuMaxSharedMemoryPerBlock);
  gpu.max_shared_bytes_per_block_optin = attribute(kCuMaxSharedMemoryPerBlockOptin);
  gpu.l2_bytes = attribute(kCuL2CacheBytes);
  KILN_RETURN_IF_ERROR(status);
  return gpu;
}

std::string Listing(const std::vector<CudaGpu>& gpus) {
  std::string text;
  for (const CudaGpu& gpu : gpus) {
    text += fmt::format("{}{} ({}, {})", text.empty() ? "" : ", ", gpu.ordinal, gpu.name, gpu.uuid);
  }
  return text;
}

}  // namespace

StatusOr<std::vector<CudaGpu>> ListCudaGpus(const CudaDriver& driver) {
  int count = 0;
  KILN_RETURN_IF_ERROR(driver.Check(driver.DeviceGetCount(&count), "count the GPUs"));
  if (count == 0) {
    return FailedPrecondition("the NVIDIA driver shows no GPU; is CUDA_VISIBLE_DEVICES set?");
  }
  std::vector<CudaGpu> gpus;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    KILN_ASSIGN_OR_RETURN(CudaGpu gpu, Describe(driver, ordinal));
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

bool IsCudaDevice(std::string_view device) {
  return device == kCuda || device.starts_with("cuda:");
}

StatusOr<std::vector<CudaGpu>> SelectCudaGpus(const CudaDriver& driver, std::string_view device) {
  if (!IsCudaDevice(device)) {
    return InvalidArgument("'{}' names no GPU, expected cuda, cuda:0 or cuda:GPU-...", device);
  }
  KILN_ASSIGN_OR_RETURN(std::vector<CudaGpu> gpus, ListCudaGpus(driver));
  if (device == kCuda) return gpus;
  const std::string_view which = device.substr(kCuda.size() + 1);
  int ordinal = -1;
  const auto [end, error] = std::from_chars(which.data(), which.data() + which.size(), ordinal);
  const bool by_ordinal = error == std::errc() && end == which.data() + which.size();
  std::vector<CudaGpu> found;
  for (const CudaGpu& gpu : gpus) {
    const bool same = by_ordinal ? gpu.ordinal == ordinal
                                 : which.starts_with("GPU-") && gpu.uuid.starts_with(which);
    if (same) found.push_back(gpu);
  }
  if (found.empty()) return NotFound("no GPU '{}'; there are: {}", which, Listing(gpus));
  if (found.size() > 1) {
    return InvalidArgument("'{}' stands for {} GPUs: {}; give more of the UUID", which,
                           found.size(), Listing(found));
  }
  return found;
}

std::string ArchOf(const CudaGpu& gpu) { return fmt::format("sm_{}{}", gpu.major, gpu.minor); }

}  // namespace kiln::runtime
