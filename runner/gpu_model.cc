#include "runner/gpu_model.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "runner/cuda_kernels.h"

namespace kiln::runner {

// For the names of the CUDA driver.
using namespace runtime;

namespace {

constexpr int kFirstCapabilityWithClusters = 90;

int AttributeOr0(const CudaDriver& driver, const CudaGpu& gpu, CuDeviceAttribute which) {
  int value = 0;
  return driver.DeviceGetAttribute(&value, which, gpu.handle) == 0 ? std::max(value, 0) : 0;
}

// Holds one of the runner's own kernels in a context of this process.
class Probe {
 public:
  static StatusOr<Probe> Make(const CudaDriver& driver, const CudaGpu& gpu) {
    Probe probe(driver, gpu);
    KILN_RETURN_IF_ERROR(driver.Check(driver.PrimaryCtxRetain(&probe.context_, gpu.handle),
                                      "make a context to ask about clusters"));
    KILN_RETURN_IF_ERROR(driver.Check(driver.CtxSetCurrent(probe.context_), "use the context"));
    KILN_RETURN_IF_ERROR(driver.Check(driver.ModuleLoadData(&probe.module_, CudaKernelsPtx()),
                                      "compile the runner's kernels"));
    KILN_RETURN_IF_ERROR(driver.Check(
        driver.ModuleGetFunction(&probe.function_, probe.module_, "kiln_lead_in"), "find one"));
    return probe;
  }

  Probe(Probe&& other) noexcept
      : driver_(other.driver_),
        gpu_(other.gpu_),
        context_(std::exchange(other.context_, nullptr)),
        module_(std::exchange(other.module_, nullptr)),
        function_(other.function_) {}
  Probe& operator=(Probe&&) = delete;

  ~Probe() {
    if (module_ != nullptr) driver_.ModuleUnload(module_);
    if (context_ == nullptr) return;
    driver_.CtxSetCurrent(nullptr);
    driver_.PrimaryCtxRelease(gpu_.handle);
  }

  // Returns the multiprocessors that clusters of so many blocks fill if a block takes all shared
  // memory that it can have, and thereby a whole multiprocessor. 0: there are no such clusters.
  int FilledByClusters(int blocks, int64_t shared_bytes) const {
    constexpr int kPortableBlocks = 8;
    constexpr unsigned kThreads = 128, kManyClusters = 1024;
    if (blocks > kPortableBlocks &&
        driver_.FuncSetAttribute(function_, kCuFunctionNonPortableClusterAllowed, 1) != 0)
      return 0;
    const int shared = static_cast<int>(shared_bytes);
    if (driver_.FuncSetAttribute(function_, kCuFunctionMaxDynamicSharedBytes, shared) != 0)
      return 0;
    CuLaunchAttribute cluster{.id = kCuLaunchClusterDimension};
    cluster.value[0] = static_cast<unsigned>(blocks);
    cluster.value[1] = cluster.value[2] = 1;
    const CuLaunchConfig config{.grid = {kManyClusters * static_cast<unsigned>(blocks), 1, 1},
                                .block = {kThreads, 1, 1},
                                .shared_bytes = static_cast<unsigned>(shared),
                                .stream = nullptr,
                                .attributes = &cluster,
                                .attribute_count = 1};
    int clusters = 0;
    if (driver_.OccupancyMaxActiveClusters(&clusters, function_, &config) != 0) return 0;
    return std::min(std::max(clusters, 0) * blocks, gpu_.multiprocessors);
  }

 private:
  Probe(const CudaDriver& driver, const CudaGpu& gpu) : driver_(driver), gpu_(gpu) {}

  const CudaDriver& driver_;
  const CudaGpu& gpu_;
  CuContext context_ = nullptr;
  CuModule module_ = nullptr;
  CuFunction function_ = nullptr;
};

Status ReadClusters(const CudaDriver& driver, const CudaGpu& gpu, device::DeviceModel& model) {
  KILN_ASSIGN_OR_RETURN(const Probe probe, Probe::Make(driver, gpu));
  const auto filled = [&](int blocks) {
    const int count = probe.FilledByClusters(blocks, model.opt_in_shared_bytes_per_block);
    if (count > 0) model.max_cluster_blocks = blocks;
    return count;
  };
  model.multiprocessors_in_clusters_of_2 = filled(2);
  model.multiprocessors_in_clusters_of_4 = filled(4);
  model.multiprocessors_in_clusters_of_8 = filled(8);
  model.multiprocessors_in_clusters_of_16 = filled(16);
  return OkStatus();
}

}  // namespace

StatusOr<device::DeviceModel> ReadGpuModel(const CudaDriver& driver, const CudaGpu& gpu) {
  constexpr int kKiloPerMega = 1000;
  const auto ask = [&](CuDeviceAttribute which) { return AttributeOr0(driver, gpu, which); };
  device::DeviceModel model;
  model.name = gpu.name;
  model.compute_capability = 10 * gpu.major + gpu.minor;
  model.multiprocessors = gpu.multiprocessors;
  model.clock_mhz = ask(kCuClockRateKhz) / kKiloPerMega;
  model.memory_clock_mhz = ask(kCuMemoryClockRateKhz) / kKiloPerMega;
  model.memory_bus_bits = ask(kCuMemoryBusWidthBits);
  model.memory_bytes = gpu.memory_bytes;
  model.l2_bytes = gpu.l2_bytes;
  model.registers_per_multiprocessor = ask(kCuMaxRegistersPerMultiprocessor);
  model.shared_bytes_per_multiprocessor = ask(kCuMaxSharedMemoryPerMultiprocessor);
  model.threads_per_multiprocessor = ask(kCuMaxThreadsPerMultiprocessor);
  model.blocks_per_multiprocessor = ask(kCuMaxBlocksPerMultiprocessor);
  model.registers_per_block = static_cast<int32_t>(gpu.max_registers_per_block);
  model.shared_bytes_per_block = gpu.max_shared_bytes_per_block;
  model.opt_in_shared_bytes_per_block = gpu.max_shared_bytes_per_block_optin;
  model.reserved_shared_bytes_per_block = ask(kCuReservedSharedMemoryPerBlock);
  model.threads_per_block = gpu.max_threads_per_block;
  model.warp_size = gpu.warp_size;
  if (model.compute_capability < kFirstCapabilityWithClusters) {
    model.max_cluster_blocks = 1;
  } else if (driver.OccupancyMaxActiveClusters != nullptr) {
    const Status status = ReadClusters(driver, gpu, model);
    if (!status.ok())
      LogWarn(
          "{} did not say how many clusters it runs at once, so the usual number is assumed: {}",
          gpu.name, Message(status));
  }
  KILN_RETURN_IF_ERROR(device::CheckDeviceModel(model));
  return model;
}

}  // namespace kiln::runner
