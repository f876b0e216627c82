// Lists the GPUs of this machine, and chooses among them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "runtime/cuda_driver.h"

namespace kiln::runtime {

struct CudaGpu {
  CuDeviceHandle handle = 0;
  // Number as CUDA counts, with CUDA_VISIBLE_DEVICES applied.
  int ordinal = 0;
  // "NVIDIA H200"
  std::string name;
  // "GPU-1f0c...", as nvidia-smi -L prints it.
  std::string uuid;
  // "0000:3b:00.0", as /sys/bus/pci/devices names it; "" if the driver does not say.
  std::string pci_address;
  // Compute capability.
  int major = 0;
  int minor = 0;
  int multiprocessors = 0;
  int warp_size = 0;
  int max_threads_per_block = 0;
  int64_t max_registers_per_block = 0;
  // Limit without opting in.
  int64_t max_shared_bytes_per_block = 0;
  // Limit of one launch with opting in.
  int64_t max_shared_bytes_per_block_optin = 0;
  int64_t l2_bytes = 0;
  int64_t memory_bytes = 0;
};

// FailedPrecondition if there is no GPU.
StatusOr<std::vector<CudaGpu>> ListCudaGpus(const CudaDriver& driver);

// Returns all GPUs for "cuda", one by its ordinal for "cuda:0", and one by its UUID, or a beginning
// of it that no other GPU has, for "cuda:GPU-1f0c2a". NotFound lists the GPUs that there are.
StatusOr<std::vector<CudaGpu>> SelectCudaGpus(const CudaDriver& driver, std::string_view device);

// Returns whether `device` names CUDA devices at all.
bool IsCudaDevice(std::string_view device);

// Returns for instance "sm_90".
std::string ArchOf(const CudaGpu& gpu);

}  // namespace kiln::runtime
