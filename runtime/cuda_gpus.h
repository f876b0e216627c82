// The GPUs of this machine and how one of them is chosen.
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
  int ordinal = 0;   // as CUDA counts them, CUDA_VISIBLE_DEVICES applied
  std::string name;  // "NVIDIA H200"
  std::string uuid;  // "GPU-1f0c...", as nvidia-smi -L prints it
  int major = 0;     // compute capability
  int minor = 0;
  int multiprocessors = 0;
  int warp_size = 0;
  int max_threads_per_block = 0;
  int64_t max_registers_per_block = 0;
  int64_t max_shared_bytes_per_block = 0;        // without opting in
  int64_t max_shared_bytes_per_block_optin = 0;  // what one launch may get
  int64_t l2_bytes = 0;
  int64_t memory_bytes = 0;
};

// FailedPrecondition when there is none.
StatusOr<std::vector<CudaGpu>> ListCudaGpus(const CudaDriver& driver);

// "cuda": all of them; "cuda:0": by ordinal; "cuda:GPU-1f0c2a": by UUID or a beginning of it that
// only one has. NotFound names those there are.
StatusOr<std::vector<CudaGpu>> SelectCudaGpus(const CudaDriver& driver, std::string_view device);

// Whether this names CUDA devices at all.
bool IsCudaDevice(std::string_view device);

std::string ArchOf(const CudaGpu& gpu);  // "sm_90"

}  // namespace kiln::runtime
